// The decoder that is evaluated.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_DECODER_SESSION_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_DECODER_SESSION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/generator.h"
#include "tools/command_line/command_line.h"
#include "tools/evaluate/lm/continuation.h"
#include "tools/evaluate/open_decoder.h"

namespace hippodrome {

// Where texts that are made end.
struct TextEnd {
  std::vector<std::string> until;  // before the first of these; none may be empty
  int64_t max_tokens = 0;
};

// A model with its tokenizer, and a generator that takes in many sequences at a time. One thread.
class DecoderSession {
 public:
  // Sequences that run together.
  static constexpr int64_t kSequences = 64;

  // Opens the model in `directory` with --weights, --device, --threads, --pin and --numa-node.
  // Errors: of reading and loading it.
  static absl::StatusOr<std::unique_ptr<DecoderSession>> Open(const CommandLine& line,
                                                              const std::string& directory);

  const H3Config& config() const { return opened_.decoder.model->config(); }
  const BpeTokenizer* tokenizer() const { return opened_.decoder.tokenizer.get(); }  // may be null
  DType weights() const { return opened_.decoder.weights; }

  // For texts of this model.
  Joiner NewJoiner() const { return {tokenizer(), config().eos_token_id}; }
  // Whether the model can score it. Errors: those of Generator::Validate().
  absl::Status Check(const Continuation& continuation) const;

  // A score for each continuation of each question, with the bits of ForwardScores(). What the
  // continuations of a question begin with is taken in once. REQUIRES: Check() of all was OK.
  absl::StatusOr<std::vector<std::vector<ContinuationScore>>> Score(
      std::span<const std::vector<Continuation>> questions);

  // Of each prompt the likeliest text behind it. Errors: those of Generator::Validate().
  // REQUIRES: there is a tokenizer.
  absl::StatusOr<std::vector<std::string>> Write(std::span<const std::vector<int32_t>> prompts,
                                                 const TextEnd& end);

 private:
  DecoderSession() = default;

  OpenedDecoder opened_;
  std::unique_ptr<Generator> generator_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_DECODER_SESSION_H_
