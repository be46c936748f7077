#include <array>
#include <utility>

#include "server/metrics/metric_series.h"
#include "server/metrics/metrics.h"

namespace hippodrome {
namespace {

// What was counted elsewhere, since `before`.
void CountSince(prometheus::Counter& counter, int64_t now, int64_t before) {
  counter.Increment(static_cast<double>(now - before));
}

}  // namespace

struct ModelMetrics::Series {
  Series(MetricRegistry& r, const std::string& m)
      : model(m),
        queue(r, QueueDuration(r), m),
        tokenize(r, Histogram(r, "hippodrome_tokenize_duration_seconds", "Tokenising a prompt"), m),
        prefill(r,
                Histogram(r, "hippodrome_prefill_duration_seconds",
                          "From admission to the first token"),
                m),
        decode(r,
               Histogram(r, "hippodrome_decode_duration_seconds",
                         "From the first token to the last one"),
               m),
        per_token(r,
                  Histogram(r, "hippodrome_time_per_output_token_seconds",
                            "Of one answer: decoding, by tokens after the first"),
                  m),
        first_token(r,
                    Histogram(r, "hippodrome_time_to_first_token_seconds",
                              "From arrival to the first token"),
                    m),
        next_token(r,
                   Histogram(r, "hippodrome_inter_token_latency_seconds",
                             "Between tokens of one sequence"),
                   m),
        request(r, RequestDuration(r), m),
        step(EngineStepSeconds(r)),
        prefill_step(step.Add({{"model", m}, {"phase", "prefill"}}, r.latency_buckets())),
        decode_step(step.Add({{"model", m}, {"phase", "decode"}}, r.latency_buckets())),
        batch(BatchSequences(r).Add({{"model", m}}, PowersOfTwo(10))),
        prompts(PromptTokens(r).Add({{"model", m}}, PowersOfTwo(20))),
        answers(Histogram(r, "hippodrome_request_generated_tokens", "New tokens of an answer")
                    .Add({{"model", m}}, PowersOfTwo(20))),
        cancel_latency(Histogram(r, "hippodrome_cancel_latency_seconds",
                                 "Until what a cancelled request held was free")
                           .Add({{"model", m}}, r.latency_buckets())),
        scored_tokens(Counter(r, "hippodrome_scored_tokens_total",
                              "Tokens whose log probabilities were asked for")
                          .Add({{"model", m}})),
        last_step(LastStep(r).Add({{"model", m}})),
        prompt_tokens(Counter(r, "hippodrome_prompt_tokens_total", "Tokens of admitted prompts")
                          .Add({{"model", m}})),
        generated_tokens(
            Counter(r, "hippodrome_generated_tokens_total", "New tokens").Add({{"model", m}})),
        cancelled(CancelledTotal(r)),
        cancelled_in{&cancelled.Add({{"model", m}, {"where", "queue"}}),
                     &cancelled.Add({{"model", m}, {"where", "prefill"}}),
                     &cancelled.Add({{"model", m}, {"where", "decode"}})},
        migrated(Counter(r, "hippodrome_requests_migrated_total",
                         "Requests that a drain ended with their state, for another server")
                     .Add({{"model", m}})),
        rejected(AdmissionRejectedTotal(r)),
        not_a_number(Counter(r, "hippodrome_not_a_number_total",
                             "Requests that ended because the model computed no number")
                         .Add({{"model", m}})),
        queued(r, m),
        running(RequestsRunning(r)),
        prefilling(running.Add({{"model", m}, {"phase", "prefill"}})),
        decoding(running.Add({{"model", m}, {"phase", "decode"}})),
        slots(Gauge(r, "hippodrome_state_slots", "Recurrent state slots")),
        active_slots(slots.Add({{"model", m}, {"state", "active"}})),
        free_slots(slots.Add({{"model", m}, {"state", "free"}})),
        bytes(Gauge(r, "hippodrome_state_bytes", "State that running sequences hold")),
        recurrent_bytes(bytes.Add({{"model", m}, {"kind", "recurrent"}})),
        page_bytes(bytes.Add({{"model", m}, {"kind", "attention_kv"}})),
        budget(Gauge(r, "hippodrome_state_budget_bytes", "State that there is room for")
                   .Add({{"model", m}})),
        prefix_hits(Counter(r, "hippodrome_prefix_hits_total",
                            "Prompts that began with a state of the tree of prefixes")
                        .Add({{"model", m}})),
        prefix_misses(Counter(r, "hippodrome_prefix_misses_total",
                              "Prompts that looked for a state in the tree and found none")
                          .Add({{"model", m}})),
        prefix_hit_tokens(Counter(r, "hippodrome_prefix_hit_tokens_total",
                                  "Tokens of prompts that the tree had taken in already")
                              .Add({{"model", m}})),
        prefix_evictions(Counter(r, "hippodrome_prefix_evictions_total",
                                 "States that left the tree because there was no room")
                             .Add({{"model", m}})),
        prefix_states(
            Gauge(r, "hippodrome_prefix_states", "States in the tree").Add({{"model", m}})),
        prefix_bytes(Gauge(r, "hippodrome_prefix_bytes", "Bytes of the states in the tree")
                         .Add({{"model", m}})),
        drafted(Counter(r, "hippodrome_draft_tokens_total",
                        "Drafted tokens that the model was asked about")
                    .Add({{"model", m}})),
        accepted(Counter(r, "hippodrome_draft_tokens_accepted_total",
                         "Drafted tokens that the model chose itself")
                     .Add({{"model", m}})),
        score_bytes(Gauge(r, "hippodrome_log_probability_bytes",
                          "Memory kept for log probabilities until clients have them")
                        .Add({{"model", m}})) {}

  std::string model;
  Latency queue, tokenize, prefill, decode, per_token, first_token, next_token, request;
  Histograms& step;
  prometheus::Histogram &prefill_step, &decode_step, &batch, &prompts, &answers, &cancel_latency;
  prometheus::Counter& scored_tokens;
  prometheus::Gauge& last_step;
  prometheus::Counter &prompt_tokens, &generated_tokens;
  Counters& cancelled;
  std::array<prometheus::Counter*, 3> cancelled_in;
  prometheus::Counter& migrated;
  Counters& rejected;
  prometheus::Counter& not_a_number;
  QueueGauges queued;
  Gauges& running;
  GaugePart prefilling, decoding;
  Gauges& slots;
  GaugePart active_slots, free_slots;
  Gauges& bytes;
  GaugePart recurrent_bytes, page_bytes, budget;
  prometheus::Counter &prefix_hits, &prefix_misses, &prefix_hit_tokens, &prefix_evictions;
  GaugePart prefix_states, prefix_bytes;
  prometheus::Counter &drafted, &accepted;
  GaugePart score_bytes;
  PrefixCounts published;  // by the model's one batcher, as the next
  DraftCounts published_drafts;
};

ModelMetrics::ModelMetrics(MetricRegistry& registry, const std::string& model)
    : series_(std::make_unique<Series>(registry, model)) {
  AnnounceRejections(series_->rejected, model);
}

ModelMetrics::~ModelMetrics() = default;

void ModelMetrics::Admitted(Api api, std::optional<Duration> queued, int64_t prompt_tokens) {
  series_->queue.Observe(api, queued);
  series_->prompt_tokens.Increment(static_cast<double>(prompt_tokens));
  series_->prompts.Observe(static_cast<double>(prompt_tokens));
}

void ModelMetrics::Tokenized(Api api, Duration duration) const {
  series_->tokenize.Observe(api, duration);
}

void ModelMetrics::FirstToken(Api api, std::optional<Duration> since_submit,
                              Duration since_admission) {
  series_->first_token.Observe(api, since_submit);
  series_->prefill.Observe(api, since_admission);
}

void ModelMetrics::NextToken(Api api, Duration since_last) {
  series_->next_token.Observe(api, since_last);
}

void ModelMetrics::Finished(Api api, std::optional<Duration> since_submit,
                            Duration since_first_token, int64_t tokens) {
  series_->request.Observe(api, since_submit);
  series_->answers.Observe(static_cast<double>(tokens));
  if (tokens > 0) series_->decode.Observe(api, since_first_token);
  if (tokens > 1) {
    series_->per_token.Observe(api, since_first_token / static_cast<double>(tokens - 1));
  }
}

void ModelMetrics::Generated(int64_t tokens) {
  series_->generated_tokens.Increment(static_cast<double>(tokens));
}

void ModelMetrics::Scored(int64_t tokens) {
  series_->scored_tokens.Increment(static_cast<double>(tokens));
}

void ModelMetrics::Freed(Duration since_cancelled) {
  series_->cancel_latency.Observe(since_cancelled.count());
}

void ModelMetrics::Cancelled(Phase where) {
  series_->cancelled_in[static_cast<size_t>(where)]->Increment();
}

void ModelMetrics::NotANumber() { series_->not_a_number.Increment(); }

void ModelMetrics::Migrated() { series_->migrated.Increment(); }

void ModelMetrics::Rejected(const std::string& reason) {
  series_->rejected.Add({{"model", series_->model}, {"reason", reason}}).Increment();
}

void ModelMetrics::EngineStep(Phase phase, Duration duration, int64_t sequences) {
  series_->last_step.SetToCurrentTime();
  (phase == Phase::kPrefill ? series_->prefill_step : series_->decode_step)
      .Observe(duration.count());
  if (sequences > 0) series_->batch.Observe(static_cast<double>(sequences));
}

void ModelMetrics::SetLoad(const QueuedRequests& queued, int64_t prefilling, int64_t decoding) {
  series_->queued.Set(queued);
  series_->prefilling.Set(static_cast<double>(prefilling));
  series_->decoding.Set(static_cast<double>(decoding));
}

void ModelMetrics::SetState(const Footprint& used, const Footprint& capacity, int64_t slot_bytes) {
  const int64_t recurrent = used.slots * slot_bytes;
  series_->active_slots.Set(static_cast<double>(used.slots));
  series_->free_slots.Set(static_cast<double>(capacity.slots - used.slots));
  series_->recurrent_bytes.Set(static_cast<double>(recurrent));
  series_->page_bytes.Set(static_cast<double>(used.bytes - recurrent));
  series_->budget.Set(static_cast<double>(capacity.bytes));
}

void ModelMetrics::SetPrefixes(const PrefixCounts& counts) {
  const PrefixCounts before = std::exchange(series_->published, counts);
  CountSince(series_->prefix_hits, counts.hits, before.hits);
  CountSince(series_->prefix_misses, counts.misses, before.misses);
  CountSince(series_->prefix_hit_tokens, counts.hit_tokens, before.hit_tokens);
  CountSince(series_->prefix_evictions, counts.evictions, before.evictions);
  series_->prefix_states.Set(static_cast<double>(counts.nodes));
  series_->prefix_bytes.Set(static_cast<double>(counts.bytes));
}

void ModelMetrics::SetDrafts(const DraftCounts& counts) {
  const DraftCounts before = std::exchange(series_->published_drafts, counts);
  CountSince(series_->drafted, counts.drafted, before.drafted);
  CountSince(series_->accepted, counts.accepted, before.accepted);
}

void ModelMetrics::SetScoreBytes(int64_t bytes) {
  series_->score_bytes.Set(static_cast<double>(bytes));
}

}  // namespace hippodrome
