// A sequence that has a generator for itself: what `generate` and its interactive form share.
#ifndef HIPPODROME_TOOLS_COMMANDS_LONE_SEQUENCE_H_
#define HIPPODROME_TOOLS_COMMANDS_LONE_SEQUENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/state/saved_state.h"
#include "engine/state/state_file.h"
#include "engine/tokenizer/bpe.h"
#include "kernels/backend.h"

namespace hippodrome {

// As those of GeneratorOptions.
struct LoneOptions {
  int64_t attention_window = 0;
  DType h3_state = DType::kF32;
  bool speculate = false;
  const HybridH3* draft = nullptr;
};

// With one slot and the pages of `tokens`, no more, or of a window of attention if there is one.
// Errors: those of Generator::Create().
absl::StatusOr<std::unique_ptr<Generator>> MakeLoneGenerator(Backend& backend,
                                                             const HybridH3& model, int64_t tokens,
                                                             const LoneOptions& how);

// What a sequence said.
struct LoneOutput {
  std::vector<int32_t> token_ids;
  std::string text;                           // empty without a tokenizer
  FinishReason finish = FinishReason::kNone;  // kNone: it was stopped
  std::string pending_text;                   // SavedState::pending_text, where that is saved
};

struct LoneRun {
  const BpeTokenizer* tokenizer = nullptr;  // null: there is no text
  // Gets the text as it comes.
  std::function<void(const std::string&)> print = [](const std::string&) {};
  // Asked before each token, and often while the prompt is taken in.
  std::function<bool()> stopped = [] { return false; };
  // What the text begins with: SavedState::pending_text.
  std::string pending_text = {};
  // The sequence whose state is saved behind this: it stops where it has one, and an incomplete
  // character is for whoever goes on. Nothing: nobody does.
  std::optional<SequenceId> saved = {};
};

// Runs the only sequence of `generator` to its end, or until it is stopped. Errors: kInternal where
// the model computes what is not a number.
absl::StatusOr<LoneOutput> RunLoneSequence(Generator& generator, const LoneRun& run);

// Why later bits may differ from those of one piece, for people to read; empty where they do not.
std::string WhyInexact(const SavedState& state, const std::string& arithmetic);

// Writes the state to a file that is there as a whole or not at all.
absl::Status SaveStateTo(const std::string& path, const SavedState& state,
                         const StateLayout& layout, const StateFileOptions& how);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_COMMANDS_LONE_SEQUENCE_H_
