#include "tools/evaluate/positions/perplexity_by_length.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr int64_t kFirstLength = 64;

using Windows = std::span<const std::span<const int32_t>>;
using Values = std::vector<double>;

// Contexts, ascending, before the last tokens of a window.
std::vector<int64_t> ContextsOf(const LengthOptions& options) {
  const int64_t most = options.window.length - options.last_tokens;
  std::vector<int64_t> contexts = {0};
  for (int64_t context = kFirstLength; context < most; context *= 2) contexts.push_back(context);
  contexts.push_back(most);
  return contexts;
}

std::vector<PositionBucket> BucketsOf(int64_t length) {
  std::vector<PositionBucket> buckets;
  int64_t first = 1;
  for (int64_t end = kFirstLength; first <= length; end *= 2) {
    buckets.push_back({.first = first, .last = std::min(end, length)});
    first = end + 1;
  }
  return buckets;
}

std::vector<ValueBlock> BlocksOf(std::span<const double> values) {
  std::vector<ValueBlock> blocks;
  while (!values.empty()) {
    const auto some = values.first(std::min<size_t>(values.size(), kBlockTokens));
    blocks.push_back({std::accumulate(some.begin(), some.end(), 0.0), std::ssize(some)});
    values = values.subspan(some.size());
  }
  return blocks;
}

std::optional<Interval> ExpInterval(std::span<const Values> windows) {
  std::vector<std::vector<ValueBlock>> groups;
  for (const Values& values : windows) groups.push_back(BlocksOf(values));
  return BootstrapBlocks(groups, [](double mean) { return std::exp(mean); });
}

// `nll`: by window, of its tokens from place `first` on.
LengthScore LengthScoreOf(Windows windows, std::span<const Values> nll,
                          std::span<const int64_t> token_bytes, int64_t first) {
  LengthScore score;
  double sum = 0;
  for (size_t w = 0; w < windows.size(); ++w) {
    score.tokens += std::ssize(nll[w]);
    sum = std::accumulate(nll[w].begin(), nll[w].end(), sum);
    for (const int32_t id : windows[w].subspan(first, nll[w].size())) {
      score.bytes += token_bytes[id];
    }
  }
  score.nll = sum / static_cast<double>(score.tokens);
  score.perplexity = ExpInterval(nll);
  return score;
}

// What the windows gave.
struct Readings {
  std::vector<ScoredWindow> whole;            // by window
  std::vector<std::vector<Values>> contexts;  // nll of the last tokens by context, by window
};

absl::StatusOr<Readings> ReadAll(WindowReader& reader, Windows windows,
                                 const LengthOptions& options,
                                 const std::function<void(int64_t, int64_t)>& progress) {
  const int64_t length = options.window.length, last = options.last_tokens;
  const std::vector<int64_t> contexts = ContextsOf(options);
  const int64_t all =
      std::accumulate(contexts.begin(), contexts.end(), int64_t{0}) + std::ssize(contexts) * last;
  Readings readings{.contexts = std::vector<std::vector<Values>>(contexts.size())};
  int64_t done = 0;
  const auto read = [&](std::span<const int32_t> ids, int64_t first) {
    auto scores = reader.Read(ids, first);
    done += std::ssize(ids) - 1;
    if (progress) progress(done, all * std::ssize(windows));
    return scores;
  };
  for (const auto window : windows) {
    // Short ones first: they warm up what is timed.
    for (size_t c = 0; c + 1 < contexts.size(); ++c) {
      const int64_t tokens = contexts[c] + last;
      HIPPODROME_ASSIGN_OR_RETURN(ScoredWindow scores,
                                  read(window.subspan(length - tokens), contexts[c]));
      readings.contexts[c].push_back(std::move(scores.nll));
    }
    HIPPODROME_ASSIGN_OR_RETURN(ScoredWindow scores, read(window, 0));
    readings.contexts.back().emplace_back(scores.nll.end() - last, scores.nll.end());
    readings.whole.push_back(std::move(scores));
  }
  return readings;
}

void FillBucket(const Readings& readings, Windows windows, std::span<const int64_t> token_bytes,
                PositionBucket& bucket) {
  std::vector<Values> nll;
  double seconds = 0;
  for (const ScoredWindow& window : readings.whole) {
    nll.emplace_back(window.nll.begin() + bucket.first - 1, window.nll.begin() + bucket.last);
    seconds = std::accumulate(window.seconds.begin() + bucket.first - 1,
                              window.seconds.begin() + bucket.last, seconds);
  }
  bucket.score = LengthScoreOf(windows, nll, token_bytes, bucket.first);
  bucket.tokens_per_second = static_cast<double>(bucket.score.tokens) / seconds;
}

void CompareBuckets(std::vector<PositionBucket>& buckets) {
  const auto compared = std::find_if(buckets.begin(), buckets.end(), [](const PositionBucket& b) {
    return b.last == kComparedLength;
  });
  if (compared == buckets.end()) return;
  for (auto longer = compared + 1; longer != buckets.end(); ++longer) {
    longer->score.ratio = std::exp(longer->score.nll - compared->score.nll);
  }
}

// As many values of each window in both.
std::vector<Values> Differences(std::span<const Values> values, std::span<const Values> others) {
  std::vector<Values> differences(values.begin(), values.end());
  for (size_t w = 0; w < differences.size(); ++w) {
    for (size_t i = 0; i < differences[w].size(); ++i) differences[w][i] -= others[w][i];
  }
  return differences;
}

void CompareContexts(const Readings& readings, std::vector<ContextScore>& contexts) {
  const auto compared = std::find_if(contexts.begin(), contexts.end(), [](const ContextScore& c) {
    return c.context == kComparedLength;
  });
  if (compared == contexts.end()) return;
  const std::vector<Values>& others = readings.contexts[compared - contexts.begin()];
  for (auto longer = compared + 1; longer != contexts.end(); ++longer) {
    longer->score.ratio = std::exp(longer->score.nll - compared->score.nll);
    longer->score.ratio_interval =
        ExpInterval(Differences(readings.contexts[longer - contexts.begin()], others));
  }
}

}  // namespace

double LengthScore::Perplexity() const { return std::exp(nll); }

double LengthScore::BitsPerByte() const {
  return nll / std::log(2.0) * static_cast<double>(tokens) / static_cast<double>(bytes);
}

std::vector<std::span<const int32_t>> CutWindows(std::span<const int32_t> ids, int64_t length) {
  std::vector<std::span<const int32_t>> windows;
  for (; std::ssize(ids) > length; ids = ids.subspan(length)) {
    windows.push_back(ids.first(length + 1));
  }
  return windows;
}

absl::StatusOr<PerplexityByLength> EvaluateByLength(
    Backend& backend, const HybridH3& model, Windows windows, std::span<const int64_t> token_bytes,
    const LengthOptions& options,
    const std::function<void(int64_t done, int64_t total)>& progress) {
  const int64_t length = options.window.length;
  if (windows.empty()) return InvalidArgument("there are no windows");
  if (options.last_tokens < 1 || options.last_tokens >= length) {
    return InvalidArgument("last_tokens is " + std::to_string(options.last_tokens) +
                           ", expected at least 1 and less than the window's " +
                           std::to_string(length));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto reader,
                              WindowReader::Make(backend, model, options.window));
  HIPPODROME_ASSIGN_OR_RETURN(const Readings readings,
                              ReadAll(*reader, windows, options, progress));
  PerplexityByLength result{.windows = std::ssize(windows), .by_position = BucketsOf(length)};
  for (PositionBucket& bucket : result.by_position) {
    FillBucket(readings, windows, token_bytes, bucket);
    bucket.state_bytes = reader->StateBytes(bucket.last);
  }
  CompareBuckets(result.by_position);
  const std::vector<int64_t> contexts = ContextsOf(options);
  for (size_t c = 0; c < contexts.size(); ++c) {
    result.by_context.push_back(
        {contexts[c], LengthScoreOf(windows, readings.contexts[c], token_bytes,
                                    length - options.last_tokens + 1)});
  }
  CompareContexts(readings, result.by_context);
  return result;
}

}  // namespace hippodrome
