// Who guesses what comes next.
#ifndef HIPPODROME_ENGINE_GENERATION_DRAFTER_H_
#define HIPPODROME_ENGINE_GENERATION_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/generation/sequence.h"
#include "engine/generation/speculation.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "kernels/backend.h"

namespace hippodrome {

struct DraftWish {
  SequenceId id = 0;
  const Sequence* sequence = nullptr;
  int64_t most = 0;  // tokens
};

class Drafter {
 public:
  virtual ~Drafter() = default;
  // Drafts for the sequences of one step, by wish: as long as Sequence::draft_length finds worth
  // it, of no token or more. All tokens from the last one of the sequence on lie in one block of
  // rewind_block() tokens.
  virtual std::vector<TokenDraft> Draft(std::span<const DraftWish> wishes) = 0;
  // DecodeState::rewind_block() of what it keeps; 0: nothing.
  virtual int64_t rewind_block() const = 0;
  // Nothing more is wanted of this sequence.
  virtual void Release(SequenceId id) = 0;
};

// From the text so far: LookUpNext().
std::unique_ptr<Drafter> MakeTextDrafter();

// By a small model, which takes in all tokens that the sequences have, and draws the next ones as
// they would themselves. It has slots and pages of its own, as `options` says; a sequence that
// finds no room there has no drafts. Backend and models must outlive it. Errors: kInvalidArgument
// where `draft` has other tokens than `model`, or states that cannot go back.
absl::StatusOr<std::unique_ptr<Drafter>> MakeModelDrafter(Backend& backend, const HybridH3& draft,
                                                          const HybridH3& model,
                                                          const GeneratorOptions& options);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_DRAFTER_H_
