#include "server/metrics/encoder_metrics.h"

#include "server/metrics/metric_series.h"

namespace hippodrome {

struct EncoderMetrics::Series {
  Series(MetricRegistry& r, const std::string& m)
      : model(m),
        queue(r, QueueDuration(r), m),
        encode(r,
               Histogram(r, "hippodrome_encode_duration_seconds",
                         "The run of an encoder that an input was part of"),
               m),
        request(r, RequestDuration(r), m),
        step(EngineStepSeconds(r).Add({{"model", m}, {"phase", "encode"}}, r.latency_buckets())),
        last_step(LastStep(r).Add({{"model", m}})),
        tokens(PromptTokens(r).Add({{"model", m}}, PowersOfTwo(20))),
        inputs(BatchSequences(r).Add({{"model", m}}, PowersOfTwo(10))),
        batch_tokens(Histogram(r, "hippodrome_batch_tokens",
                               "Tokens in an encoder's batch, padding included")
                         .Add({{"model", m}}, PowersOfTwo(20))),
        encoded_tokens(Counter(r, "hippodrome_encoded_tokens_total",
                               "Tokens of inputs that encoders ran, without padding")
                           .Add({{"model", m}})),
        padding_tokens(Counter(r, "hippodrome_padding_tokens_total", "Padding that encoders ran")
                           .Add({{"model", m}})),
        cancelled(CancelledTotal(r).Add({{"model", m}, {"where", "queue"}})),
        rejected(AdmissionRejectedTotal(r)),
        queued(r, m),
        running(RequestsRunning(r).Add({{"model", m}, {"phase", "encode"}})) {}

  std::string model;
  Latency queue, encode, request;
  prometheus::Histogram& step;
  prometheus::Gauge& last_step;
  prometheus::Histogram &tokens, &inputs, &batch_tokens;
  prometheus::Counter &encoded_tokens, &padding_tokens, &cancelled;
  Counters& rejected;
  QueueGauges queued;
  GaugePart running;
};

EncoderMetrics::EncoderMetrics(MetricRegistry& registry, const std::string& model)
    : series_(std::make_unique<Series>(registry, model)) {
  AnnounceRejections(series_->rejected, model);
}

EncoderMetrics::~EncoderMetrics() = default;

void EncoderMetrics::Encoded(Api api, std::optional<Duration> queued, Duration run,
                             int64_t tokens) {
  series_->queue.Observe(api, queued);
  series_->encode.Observe(api, run);
  series_->tokens.Observe(static_cast<double>(tokens));
}

void EncoderMetrics::Finished(Api api, std::optional<Duration> since_submit) {
  series_->request.Observe(api, since_submit);
}

void EncoderMetrics::Cancelled(int64_t inputs) {
  series_->cancelled.Increment(static_cast<double>(inputs));
}

void EncoderMetrics::Rejected(const std::string& reason) {
  series_->rejected.Add({{"model", series_->model}, {"reason", reason}}).Increment();
}

void EncoderMetrics::EngineStep(Duration duration, const EncodedBatch& batch) {
  series_->last_step.SetToCurrentTime();
  series_->step.Observe(duration.count());
  series_->inputs.Observe(static_cast<double>(batch.inputs));
  series_->batch_tokens.Observe(static_cast<double>(batch.padded_tokens));
  series_->encoded_tokens.Increment(static_cast<double>(batch.tokens));
  series_->padding_tokens.Increment(static_cast<double>(batch.padded_tokens - batch.tokens));
}

void EncoderMetrics::SetLoad(const QueuedRequests& queued, int64_t running) {
  series_->queued.Set(queued);
  series_->running.Set(static_cast<double>(running));
}

}  // namespace hippodrome
