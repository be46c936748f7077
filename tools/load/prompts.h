// What a load asks for.
#ifndef HIPPODROME_TOOLS_LOAD_PROMPTS_H_
#define HIPPODROME_TOOLS_LOAD_PROMPTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/load/load_request.h"

namespace hippodrome {

// "N", or "LEAST-MOST": each number in between is as likely.
struct LengthRange {
  int64_t least = 0;
  int64_t most = 0;
};
// Errors: kInvalidArgument, also for numbers that are not in [1, limit].
absl::StatusOr<LengthRange> ParseLengthRange(const std::string& text, int64_t limit);

struct PromptOptions {
  LoadTask task = LoadTask::kGenerate;
  LengthRange prompt{512, 512};      // tokens of each prompt, or words for kPredict
  LengthRange max_tokens{256, 256};  // new tokens of each
  uint64_t seed = 0;
};

// Token ids that prompts are drawn from, less than any tokenizer has: those of single bytes.
inline constexpr int32_t kDrawnTokens = 256;

// Prompts by number. Request i is the same in every run with the same seed, whatever ran before.
class Prompts {
 public:
  // Random ones.
  explicit Prompts(const PromptOptions& options) : options_(options) {}
  // Those of a file, in its order, over and over. A file whose name ends in .jsonl has an object in
  // each line, {"prompt": TEXT or [ID, ...], "max_tokens": N}, the latter in place of
  // options.max_tokens; of any other file each line is a text. Empty lines are passed over. Errors
  // name the file and the line.
  static absl::StatusOr<Prompts> Read(const std::string& path, const PromptOptions& options);

  LoadRequest Make(int64_t index) const;

 private:
  PromptOptions options_;
  std::vector<LoadRequest> file_;  // max_tokens = 0: as the options say
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LOAD_PROMPTS_H_
