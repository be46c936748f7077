// What a generator is inside: its sequences, and the chunk of their prompts in progress.
#ifndef HIPPODROME_ENGINE_GENERATION_GENERATOR_IMPL_H_
#define HIPPODROME_ENGINE_GENERATION_GENERATOR_IMPL_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/generation/checkpoint_keeper.h"
#include "engine/generation/drafter.h"
#include "engine/generation/generation_limits.h"
#include "engine/generation/prompt_scorer.h"
#include "engine/generation/sequence.h"
#include "engine/generator.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"
#include "engine/state/decode_state.h"
#include "engine/state/prefix_cache.h"

namespace hippodrome {

inline constexpr SequenceId kReleased = 0;  // names no sequence
inline constexpr int64_t kDraftRows = 64;   // of a step, beside those of its sequences

// A sequence whose prompt is in the chunk in progress, and its states on their way to the tree.
struct ChunkPart {
  SequenceId id = kReleased;
  std::vector<PrefillCapture> captures = {};
  std::vector<SequenceState> captured = {};  // by capture
};

struct Generator::Impl {
  Impl(Backend& backend, const HybridH3& model, const GeneratorOptions& options,
       std::unique_ptr<DecodeState> state, std::unique_ptr<Drafter> drafter)
      : b(backend),
        model(model),
        arithmetic(Arithmetic(backend, model.linear_dtype(), state->window(), options.h3_state)),
        max_sequences(options.max_sequences),
        drafter(std::move(drafter)),
        limits(model, *state, max_sequences, backend.prefill_shape().grid),
        state(std::move(state)),
        cache(*this->state, options.prefix_slots, options.prefix_interval),
        checkpoints(*this->state, limits.layout(), options.checkpoint_bytes, sequences),
        prefill(backend, model),
        step(backend, model, *this->state, max_sequences + (this->drafter ? kDraftRows : 0)),
        last_logits(model.NewLogits(backend, max_sequences)),
        scorer(backend, model.config().vocab_size, last_logits) {}

  // The last tokens of all sequences that decode.
  struct Steps {
    std::vector<SequenceId> ids;
    std::vector<StepToken> tokens;
  };

  // generator.cc
  int64_t decoding() const {
    return std::count_if(sequences.begin(), sequences.end(),
                         [](const auto& entry) { return entry.second.decoding; });
  }
  Steps NextSteps();
  void StepDone(Sequence& s);
  void SampleLast(const std::vector<std::vector<SequenceId>>& families,
                  std::vector<TokenEvent>& events);
  void Append(SequenceId id, TokenChoice choice, std::vector<TokenEvent>& events);

  // step_with_drafts.cc
  int64_t MostDrafted(const Sequence& s) const;
  std::vector<TokenDraft> Draft(const Steps& steps);
  void StepWithDrafts(const Steps& steps, std::vector<TokenEvent>& events);
  void Accept(SequenceId id, const TokenDraft& draft, std::span<TokenChoice> chosen,
              std::vector<TokenEvent>& events);
  bool GiveReady(std::vector<TokenEvent>& events);

  // take_in_prompts.cc
  void Start(Sequence& s);
  ChunkPart PartOf(SequenceId id, int64_t tokens);
  void DropCaptures(ChunkPart& part);
  void KeepCaptures(ChunkPart& part, const Sequence& s);
  void BeginChunk();
  void Pace();
  bool SkipUnscored();
  void ScoreBlock();
  void FinishChunk(std::vector<TokenEvent>& events);
  void FinishTogether(std::vector<TokenEvent>& events);
  bool BetweenParts(SequenceId id) const;
  void Drop(SequenceId id);

  // share_prompts.cc
  void Share(int64_t part, SequenceId id);
  void ScoreNext(int64_t part, std::span<const SequenceId> family);
  void StopWaiting(Sequence& s);
  std::vector<SequenceId> PartFollowers(SequenceId id);
  SequenceId HeirOf(const Sequence& s) const;
  void HandOver(SequenceId id, SequenceId heir);

  Backend& b;
  const HybridH3& model;
  std::string arithmetic;
  int64_t max_sequences;
  std::unique_ptr<Drafter> drafter;  // null: there are no drafts
  GenerationLimits limits;
  std::unique_ptr<DecodeState> state;
  PrefixCache cache;
  std::map<SequenceId, Sequence> sequences;
  CheckpointKeeper checkpoints;
  SequenceId next_id = 1;
  int64_t reserved_pages = 0;  // of all sequences

  std::deque<SequenceId> prompts;  // in turn; those of leaders alone
  PrefillChunk prefill;
  std::vector<ChunkPart> chunk;  // in progress; empty: none is
  size_t scored_part = 0;        // of the chunk, once it is through the layers
  int64_t scored_rows = 0;       // of that part
  // Those that decode and step in that chunk. It stays until the next one begins.
  std::vector<SequenceId> stepping;

  DraftCounts drafts;
  DecodeStep step;
  OwnedTensor last_logits;  // [max_sequences, padded V], of a chunk; the scorer's scratch before
  PromptScorer scorer;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_GENERATOR_IMPL_H_
