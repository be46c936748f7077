#include "engine/tokenizer/encode_pair.h"

#include <algorithm>

namespace hippodrome {
namespace {

// How many tokens of each text remain.
struct Lengths {
  int64_t a = 0;
  int64_t b = 0;
};

// Makes both add up to `room` where the sum is above it. The shorter text gives nothing up while it
// has less than half.
Lengths ShortenLongest(Lengths lengths, int64_t room) {
  if (lengths.a + lengths.b <= room) return lengths;
  const int64_t shorter = std::min({lengths.a, lengths.b, room / 2});
  const bool a_is_longer = lengths.a > lengths.b;
  return a_is_longer ? Lengths{room - shorter, shorter} : Lengths{shorter, room - shorter};
}

Lengths Shorten(Lengths lengths, bool has_pair, int64_t room, Truncation truncation) {
  if (truncation == Truncation::kNone) return lengths;
  if (truncation == Truncation::kLongestFirst) {
    return has_pair ? ShortenLongest(lengths, room) : Lengths{std::min(lengths.a, room), 0};
  }
  return {lengths.a, std::clamp<int64_t>(room - lengths.a, 0, lengths.b)};
}

std::span<const WordPiece> Keep(std::span<const WordPiece> pieces, int64_t count,
                                TruncationSide side) {
  const size_t kept = static_cast<size_t>(count);
  return side == TruncationSide::kRight ? pieces.first(kept) : pieces.last(kept);
}

void AppendPiece(const WordPiece& piece, int32_t type, int8_t sequence, EncodedText& text) {
  text.ids.push_back(piece.id);
  text.types.push_back(type);
  text.pieces.push_back(piece);
  text.sequence.push_back(sequence);
}

// The pieces of text number `sequence` and the [SEP] behind them.
void AppendText(std::span<const WordPiece> pieces, int8_t sequence, int32_t sep,
                EncodedText& text) {
  for (const WordPiece& piece : pieces) AppendPiece(piece, sequence, sequence, text);
  AppendPiece({sep}, sequence, -1, text);
}

}  // namespace

EncodedText EncodePair(const WordPieceTokenizer& tokenizer, std::span<const WordPiece> a,
                       std::span<const WordPiece> b, bool has_pair, int64_t most,
                       Truncation truncation, TruncationSide side) {
  const Lengths whole = {std::ssize(a), has_pair ? std::ssize(b) : 0};
  const int64_t added = has_pair ? 3 : 2;
  const Lengths kept = Shorten(whole, has_pair, std::max<int64_t>(most - added, 0), truncation);
  EncodedText text;
  text.dropped = whole.a + whole.b - kept.a - kept.b;
  AppendPiece({tokenizer.cls()}, 0, -1, text);
  AppendText(Keep(a, kept.a, side), 0, tokenizer.sep(), text);
  if (has_pair) AppendText(Keep(b, kept.b, side), 1, tokenizer.sep(), text);
  return text;
}

}  // namespace hippodrome
