#include "tools/load/load_figures.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hippodrome {
namespace {

using Time = LoadClock::time_point;

double Milliseconds(LoadClock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

struct Window {
  Time begin, end;
  bool Has(Time time) const { return time >= begin && time < end; }
  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

Window WindowOf(const LoadRun& run) {
  Window window{run.begin + run.plan.warm_up, run.begin + run.plan.warm_up};
  if (run.plan.requests == 0) {
    window.end += run.plan.duration;
    return window;
  }
  for (const LoadRecord& record : run.records) {
    // The last answer is in the window.
    if (record.counted) window.end = std::max(window.end, record.end + LoadClock::duration(1));
  }
  return window;
}

// The latencies of all answers.
struct Samples {
  std::vector<double> first_token, end_to_end, between_tokens, per_token, lag;
};

void AddGaps(const LoadRecord& record, std::vector<double>& gaps) {
  for (size_t i = 1; i < record.arrivals.size(); ++i) {
    gaps.push_back(Milliseconds(record.arrivals[i].time - record.arrivals[i - 1].time));
  }
}

void AddAnswer(const LoadRecord& record, Samples& samples) {
  samples.end_to_end.push_back(Milliseconds(record.end - record.intended));
  if (record.arrivals.empty()) return;
  const TokenArrival& first = record.arrivals.front();
  const TokenArrival& last = record.arrivals.back();
  samples.first_token.push_back(Milliseconds(first.time - record.intended));
  AddGaps(record, samples.between_tokens);
  int64_t tokens = 0;
  for (const TokenArrival& arrival : record.arrivals) tokens += arrival.tokens;
  if (tokens > first.tokens) {
    samples.per_token.push_back(Milliseconds(last.time - first.time) /
                                static_cast<double>(tokens - first.tokens));
  }
}

bool WithinLimits(const LoadRecord& record, const LatencyLimits& limits) {
  if (limits.end_to_end && Milliseconds(record.end - record.intended) > *limits.end_to_end) {
    return false;
  }
  if (record.arrivals.empty()) return !limits.first_token.has_value();
  const double first = Milliseconds(record.arrivals.front().time - record.intended);
  if (limits.first_token && first > *limits.first_token) return false;
  if (!limits.between_tokens) return true;
  std::vector<double> gaps;
  AddGaps(record, gaps);
  return std::all_of(gaps.begin(), gaps.end(),
                     [&](double gap) { return gap <= *limits.between_tokens; });
}

void CountOutcome(const LoadRecord& record, LoadFigures& figures) {
  ++figures.requests;
  ++figures.codes[record.code];
  switch (record.outcome) {
    case LoadOutcome::kAnswered:
      ++figures.answered;
      break;
    case LoadOutcome::kRefused:
      ++figures.refused;
      break;
    case LoadOutcome::kNotSent:
      ++figures.not_sent;
      break;
    case LoadOutcome::kFailed:
      if (++figures.failed == 1) figures.failure = record.message;
      break;
  }
}

// What came within the window, also of requests from before it.
void CountThroughput(const LoadRun& run, const Window& window, LoadFigures& figures) {
  int64_t answers = 0, new_tokens = 0, prompt_tokens = 0;
  for (const LoadRecord& record : run.records) {
    const bool answered = record.outcome == LoadOutcome::kAnswered;
    if (answered && window.Has(record.end)) ++answers;
    for (const TokenArrival& arrival : record.arrivals) {
      if (window.Has(arrival.time)) new_tokens += arrival.tokens;
    }
    const Time taken_in = record.arrivals.empty() ? record.end : record.arrivals.front().time;
    if (answered && window.Has(taken_in)) prompt_tokens += record.prompt_tokens;
  }
  if (figures.seconds <= 0) return;
  figures.requests_per_second = static_cast<double>(answers) / figures.seconds;
  figures.new_tokens_per_second = static_cast<double>(new_tokens) / figures.seconds;
  figures.total_tokens_per_second =
      static_cast<double>(new_tokens + prompt_tokens) / figures.seconds;
}

}  // namespace

Percentiles PercentilesOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](int percent) {
    // In integers: 0.99 x 100 is not quite 99.
    return values[(values.size() * percent + 99) / 100 - 1];
  };
  return {static_cast<int64_t>(values.size()), at(50), at(90), at(95), at(99), values.back()};
}

LoadFigures FiguresOf(const LoadRun& run, const LatencyLimits& limits) {
  LoadFigures figures;
  Samples samples;
  for (const LoadRecord& record : run.records) {
    if (!record.counted) continue;
    CountOutcome(record, figures);
    if (record.outcome == LoadOutcome::kNotSent) continue;
    samples.lag.push_back(Milliseconds(record.sent - record.intended));
    if (record.outcome != LoadOutcome::kAnswered) continue;
    AddAnswer(record, samples);
    if (WithinLimits(record, limits)) ++figures.good;
  }
  figures.first_token = PercentilesOf(std::move(samples.first_token));
  figures.end_to_end = PercentilesOf(std::move(samples.end_to_end));
  figures.between_tokens = PercentilesOf(std::move(samples.between_tokens));
  figures.per_token = PercentilesOf(std::move(samples.per_token));
  figures.lag = PercentilesOf(std::move(samples.lag));
  const Window window = WindowOf(run);
  figures.seconds = window.seconds();
  if (run.plan.rate > 0) {
    // What came of the process, where that is known: its mean is `rate` in the long run only.
    figures.offered = run.plan.requests > 0
                          ? run.plan.rate
                          : static_cast<double>(figures.requests) / figures.seconds;
  }
  CountThroughput(run, window, figures);
  if (figures.requests > 0) {
    figures.good_share = static_cast<double>(figures.good) / static_cast<double>(figures.requests);
  }
  if (figures.seconds > 0) figures.goodput = static_cast<double>(figures.good) / figures.seconds;
  return figures;
}

}  // namespace hippodrome
