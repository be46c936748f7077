#include <algorithm>

#include "engine/generation/drafter.h"

namespace hippodrome {
namespace {

class TextDrafter final : public Drafter {
 public:
  std::vector<TokenDraft> Draft(std::span<const DraftWish> wishes) override {
    std::vector<TokenDraft> drafts;
    for (const DraftWish& wish : wishes) {
      const Sequence& s = *wish.sequence;
      TokenDraft& draft = drafts.emplace_back();
      if (wish.most <= 0) continue;
      draft = LookUpNext(s.tokens, wish.most);
      const int64_t worth = s.draft_length.In(std::ssize(wishes), draft.basis);
      if (worth < std::ssize(draft.tokens)) draft.tokens.resize(worth);
    }
    return drafts;
  }
  int64_t rewind_block() const override { return 0; }
  void Release(SequenceId /*id*/) override {}
};

}  // namespace

std::unique_ptr<Drafter> MakeTextDrafter() { return std::make_unique<TextDrafter>(); }

}  // namespace hippodrome
