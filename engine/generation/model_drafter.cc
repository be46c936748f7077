#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/generation/drafter.h"
#include "engine/generation/generation_limits.h"
#include "engine/passes/decode_step.h"
#include "engine/passes/prefill_chunk.h"

namespace hippodrome {
namespace {

// With so many tokens or more to catch up a chunk is faster than steps.
constexpr int64_t kChunkTokens = 4;

// Of the matrices, for a token.
double ProductsOf(const H3Config& c) {
  const auto d = static_cast<double>(c.d_model);
  const double layer = d * (4 * d + 2 * static_cast<double>(c.d_inner));
  return static_cast<double>(c.n_layer) * layer + d * static_cast<double>(c.padded_vocab_size);
}

int64_t PagesOf(Backend& backend, const HybridH3& draft, int64_t key_value_bytes) {
  if (draft.config().attention_layers.empty()) return 0;
  const int64_t page_bytes = draft.NewState(backend, 1, 1, kPageTokens)->bytes_per_page();
  return std::min<int64_t>(key_value_bytes / page_bytes, std::numeric_limits<int32_t>::max());
}

class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(Backend& backend, const HybridH3& draft, double cost, int64_t max_sequences,
               std::unique_ptr<DecodeState> state)
      : state_(std::move(state)),
        limits_(draft, *state_, max_sequences, backend.prefill_shape().grid),
        chunk_(backend, draft),
        step_(backend, draft, *state_, max_sequences),
        positions_(draft.config().max_position_embeddings),
        cost_(cost) {}

  std::vector<TokenDraft> Draft(std::span<const DraftWish> wishes) override {
    std::vector<Draftee> draftees;
    for (const DraftWish& wish : wishes) {
      const Sequence& s = *wish.sequence;
      Draftee& draftee = draftees.emplace_back();
      draftee.sequence = &s;
      draftee.most =
          std::min(wish.most, s.draft_length.In(std::ssize(wishes), DraftBasis::kModel, cost_));
      if (positions_ > 0) draftee.most = std::min(draftee.most, positions_ - s.position);
      if (draftee.most > 0) draftee.reader = CatchUp(wish.id, s);
    }
    while (StepOnce(draftees)) {
    }
    std::vector<TokenDraft> drafts;
    for (Draftee& draftee : draftees) {
      drafts.push_back({.tokens = std::move(draftee.tokens), .basis = DraftBasis::kModel});
    }
    return drafts;
  }

  int64_t rewind_block() const override { return state_->rewind_block(); }

  void Release(SequenceId id) override {
    const auto found = readers_.find(id);
    if (found == readers_.end()) return;
    state_->Release(found->second.state);
    readers_.erase(found);
  }

 private:
  // What it knows of a sequence.
  struct Reader {
    SequenceState state;
    int64_t position = 0;               // tokens that are in the state
    std::vector<int32_t> guessed = {};  // the last ones of these, which it said itself

    // Back to before the first guess that did not come true, and to before the last token of `s`.
    // They are of one block, for it has taken in nothing since. False where it cannot be told.
    bool GoBack(const Sequence& s) {
      const int64_t first = position - std::ssize(guessed);
      if (first < s.first) return false;
      int64_t true_ones = 0;
      while (true_ones < std::ssize(guessed) && first + true_ones < s.length() &&
             s.Tokens(first + true_ones, 1)[0] == guessed[true_ones]) {
        ++true_ones;
      }
      position = std::min(first + true_ones, s.position);
      guessed.clear();
      return true;
    }
  };

  // A sequence that is getting a draft.
  struct Draftee {
    const Sequence* sequence = nullptr;
    Reader* reader = nullptr;  // null: it gets none
    int64_t most = 0;
    std::vector<int32_t> tokens = {};
    std::optional<AdjustedTokens> adjusted = {};  // behind these

    bool done() const { return reader == nullptr || std::ssize(tokens) >= most; }
    // The token that the reader takes in next.
    int32_t NextToken() const {
      const int64_t drafted = reader->position - sequence->length();
      return drafted < 0 ? sequence->Tokens(reader->position, 1)[0] : tokens[drafted];
    }
    // The step that takes in the last token of all chooses another one.
    HowToChoose how() const {
      HowToChoose how = sequence->how();
      how.sampling.position += std::ssize(tokens);
      how.likeliest.reset();
      if (adjusted) how.adjustments = adjusted->adjustments();
      return how;
    }
    void Append(int32_t token) {
      tokens.push_back(token);
      if (!sequence->adjusted) return;
      if (!adjusted) adjusted = sequence->adjusted;
      adjusted->Append(token);
    }
  };

  // The reader of a sequence, which has taken in nearly all tokens but the last one; null where
  // there is no room for it, or some tokens are not known any more.
  Reader* CatchUp(SequenceId id, const Sequence& s) {
    const auto found = readers_.find(id);
    if (found == readers_.end() && s.first > 0) return nullptr;
    if (found == readers_.end()) {
      const int64_t left = s.request.max_tokens - s.generated;
      auto state = state_->Reserve(limits_.Cost(s.length(), left).pages);
      if (!state) return nullptr;
      readers_.emplace(id, Reader{.state = *std::move(state)});
    }
    Reader& reader = readers_.at(id);
    if (!reader.GoBack(s)) return nullptr;
    while (s.position - reader.position >= kChunkTokens) {
      state_->Slide(reader.state, reader.position);
      const int64_t tokens = chunk_.TokensAt(reader.position, s.position);
      const PrefillPart part{.tokens = s.Tokens(reader.position, tokens),
                             .start = reader.position,
                             .sequence = &reader.state};
      chunk_.Begin({&part, 1});
      while (!chunk_.done()) chunk_.RunLayer(*state_);
      reader.position += tokens;
    }
    return &reader;
  }

  // A token further with all that are not done; false where all are.
  bool StepOnce(std::vector<Draftee>& draftees) {
    std::vector<Draftee*> stepping;
    std::vector<StepToken> tokens;
    std::vector<HowToChoose> how;
    for (Draftee& draftee : draftees) {
      if (draftee.done()) continue;
      Reader& reader = *draftee.reader;
      state_->Slide(reader.state, reader.position);
      stepping.push_back(&draftee);
      tokens.push_back(
          {.token = draftee.NextToken(), .position = reader.position, .sequence = &reader.state});
      how.push_back(draftee.how());
    }
    if (stepping.empty()) return false;
    const std::vector<TokenChoice> chosen = step_.Next(tokens, how);
    for (size_t i = 0; i < stepping.size(); ++i) {
      Draftee& draftee = *stepping[i];
      Reader& reader = *draftee.reader;
      if (reader.position >= draftee.sequence->length()) reader.guessed.push_back(tokens[i].token);
      const int64_t known = draftee.sequence->length() + std::ssize(draftee.tokens);
      if (++reader.position < known) continue;
      if (chosen[i].token >= 0) {
        draftee.Append(chosen[i].token);
      } else {
        draftee.most = 0;  // it knows no more
      }
    }
    return true;
  }

  std::unique_ptr<DecodeState> state_;
  GenerationLimits limits_;
  PrefillChunk chunk_;
  DecodeStep step_;
  int64_t positions_;  // that it knows; 0: all
  double cost_;        // of a token, as a part of a step of the model that it drafts for
  std::map<SequenceId, Reader> readers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Drafter>> MakeModelDrafter(Backend& backend, const HybridH3& draft,
                                                          const HybridH3& model,
                                                          const GeneratorOptions& options) {
  const H3Config& config = draft.config();
  if (config.vocab_size != model.config().vocab_size) {
    return InvalidArgument("the draft model has " + std::to_string(config.vocab_size) +
                           " tokens, expected those of the model, " +
                           std::to_string(model.config().vocab_size));
  }
  const bool paged = !config.attention_layers.empty();
  auto state = draft.NewState(backend, options.max_sequences,
                              PagesOf(backend, draft, options.key_value_bytes), kPageTokens,
                              paged ? options.attention_window : 0, options.h3_state);
  if (state->rewind_block() == 1) {
    return InvalidArgument(
        "states of the draft model cannot go back to earlier tokens: expected H3 and attention "
        "layers alone, on a processor");
  }
  const double cost = ProductsOf(config) / ProductsOf(model.config());
  return std::make_unique<ModelDrafter>(backend, draft, cost, options.max_sequences,
                                        std::move(state));
}

}  // namespace hippodrome
