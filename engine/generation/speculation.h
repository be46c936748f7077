// Tokens that may come next, guessed without the model, and how many of them are worth a try.
#ifndef HIPPODROME_ENGINE_GENERATION_SPECULATION_H_
#define HIPPODROME_ENGINE_GENERATION_SPECULATION_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome {

// What a draft is founded on: so many tokens before it that were there before (1, 2, 3 to 5, 6 and
// more), or another model.
enum class DraftBasis : uint8_t { kOneToken, kTwoTokens, kFewTokens, kManyTokens, kModel };

// Tokens that may come next.
struct TokenDraft {
  std::vector<int32_t> tokens = {};
  DraftBasis basis = DraftBasis::kOneToken;
};

// What followed when the end of `tokens` was there before (prompt look-up): of the places with the
// longest common end, the last one among the last kSearchedTokens; `most` tokens, of which those
// beyond the end follow on themselves. None where the last token is a new one.
TokenDraft LookUpNext(std::span<const int32_t> tokens, int64_t most);
inline constexpr int64_t kSearchedTokens = 16384;

// How long the drafts of one sequence should be.
class DraftLength {
 public:
  // Of a draft in a step of so many sequences; `cost`: of guessing a token, as a part of a step of
  // one. With rate p, its i-th token comes true with p^i, and saves the sequence's share of a step,
  // while its row costs a step's part that grows with rows: it pays where
  // p^i > n / (n + kRowsOfAStep) + cost.
  int64_t In(int64_t sequences, DraftBasis basis, double cost = 0) const;
  // So many of its tokens were those that the model chose; behind the first other one nothing is
  // known of the rest.
  void Learn(DraftBasis basis, int64_t drafted, int64_t accepted);
  // A token without a draft: what was learned loses weight, so that a text that begins to repeat
  // itself is tried again.
  void Forget();

 private:
  static constexpr std::array<double, 5> kFirstRates = {0.2, 0.4, 0.6, 0.8, 0.7};

  std::array<double, 5> rates_ = kFirstRates;  // of a token where those before it came true
};
// The weights that a step reads take as long as the products of so many rows.
inline constexpr double kRowsOfAStep = 10;

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_SPECULATION_H_
