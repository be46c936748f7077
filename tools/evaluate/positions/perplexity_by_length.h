// Perplexity of a decoder by position in its text, and by the length of the context.
#ifndef HIPPODROME_TOOLS_EVALUATE_POSITIONS_PERPLEXITY_BY_LENGTH_H_
#define HIPPODROME_TOOLS_EVALUATE_POSITIONS_PERPLEXITY_BY_LENGTH_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/backend.h"
#include "tools/evaluate/interval.h"
#include "tools/evaluate/positions/window_reader.h"

namespace hippodrome {

// Neighbouring tokens are not independent: intervals come from windows, and within them blocks of
// so many consecutive tokens, drawn with replacement (BootstrapBlocks()).
inline constexpr int64_t kBlockTokens = 64;

// What longer texts are compared with.
inline constexpr int64_t kComparedLength = 2048;

struct LengthOptions {
  WindowOptions window;  // of its length, in tokens, from a zero state
  // At the end of each window: what is scored with contexts of several lengths. In [1, length).
  int64_t last_tokens = 1024;
};

// Of some tokens of all windows.
struct LengthScore {
  int64_t tokens = 0;
  int64_t bytes = 0;  // of their text
  double nll = 0;     // mean of -ln p(token | those before it), in nats
  std::optional<Interval> perplexity;
  // Perplexity here to that at kComparedLength: of what is longer, where both are measured.
  std::optional<double> ratio;
  // Of `ratio`, by resampling the differences of the same tokens; by context alone.
  std::optional<Interval> ratio_interval;

  double Perplexity() const;
  double BitsPerByte() const;
};

// Tokens with `first` to `last` others before them in their window.
struct PositionBucket {
  int64_t first = 0;
  int64_t last = 0;
  LengthScore score;
  double tokens_per_second = 0;  // of the prefill there; within a chunk the same
  int64_t state_bytes = 0;       // of a sequence after `last` tokens
};

// The last tokens of windows, with so many more before them than the first of them needs, which is
// one: the i-th, from 1, has context + i.
struct ContextScore {
  int64_t context = 0;
  LengthScore score;
};

struct PerplexityByLength {
  int64_t windows = 0;
  // Ends double: 1 to 64, 65 to 128, .., up to the length. A text's parts differ, so that
  // perplexity differs with position for this reason too.
  std::vector<PositionBucket> by_position;
  // Contexts of 0, 64, 128, 256, .., and length - last_tokens, which is the whole window: the same
  // tokens at all of them.
  std::vector<ContextScore> by_context;
};

// As EvaluatePerplexity() cuts a text: without the incomplete tail, each with the token behind it.
std::vector<std::span<const int32_t>> CutWindows(std::span<const int32_t> ids, int64_t length);

// `windows`: of length + 1 tokens, the last of which is only scored. `token_bytes`: by id, of the
// model's vocabulary. `progress` gets tokens. Errors: those of WindowReader; kInvalidArgument where
// there are no windows, or last_tokens is out of its range.
absl::StatusOr<PerplexityByLength> EvaluateByLength(
    Backend& backend, const HybridH3& model, std::span<const std::span<const int32_t>> windows,
    std::span<const int64_t> token_bytes, const LengthOptions& options,
    const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_POSITIONS_PERPLEXITY_BY_LENGTH_H_
