#include "server/http/chunked_body.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace hippodrome {
namespace {

using Piece = ChunkedDecoder::Piece;

// Of a chunk's size with its extensions, and of all trailers together.
constexpr size_t kMaxChunkLine = 256;
constexpr size_t kMaxTrailerBytes = 4096;

Piece Broken(const char* message) {
  Piece piece;
  piece.refusal = HttpRefusal{400, "bad_request", message};
  return piece;
}

Piece Skip(size_t bytes) {
  Piece piece;
  piece.consumed = bytes;
  return piece;
}

// A line of the framing; nothing while it is incomplete.
struct Line {
  std::string_view text;
  bool complete = false;
  bool valid = true;
};

Line ReadLine(std::string_view input, size_t limit) {
  const size_t end = input.find('\n');
  Line line;
  if (end == input.npos) {
    line.valid = input.size() <= limit;
    return line;
  }
  line.complete = true;
  line.valid = end > 0 && end <= limit && input[end - 1] == '\r';
  if (line.valid) line.text = input.substr(0, end - 1);
  line.valid = line.valid && IsFieldText(line.text);
  return line;
}

}  // namespace

Piece ChunkedDecoder::Next(std::string_view input) {
  switch (state_) {
    case State::kSize:
      return ReadSize(input);
    case State::kTrailer:
      return ReadTrailer(input);
    case State::kDataEnd:
      if (input.size() < 2) return {};
      if (!input.starts_with("\r\n")) return Broken("a chunk is longer than its size");
      state_ = State::kSize;
      return Skip(2);
    case State::kData:
      break;
  }
  Piece piece;
  piece.consumed = static_cast<size_t>(std::min(left_, static_cast<int64_t>(input.size())));
  piece.data = input.substr(0, piece.consumed);
  left_ -= static_cast<int64_t>(piece.consumed);
  if (left_ == 0) state_ = State::kDataEnd;
  return piece;
}

Piece ChunkedDecoder::ReadSize(std::string_view input) {
  const Line line = ReadLine(input, kMaxChunkLine);
  if (!line.valid) return Broken("the line before a chunk is wrong or too long");
  if (!line.complete) return {};
  const char* const end = line.text.data() + line.text.size();
  const auto [rest, error] = std::from_chars(line.text.data(), end, left_, 16);
  const bool signed_size = line.text.starts_with('-');
  if (error != std::errc() || signed_size || (rest != end && *rest != ';')) {
    return Broken("the size of a chunk is wrong");
  }
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  if (left_ > 0 && ++chunks_ > kMaxChunks) {
    Piece piece;
    piece.refusal = HttpRefusal{413, "too_many_chunks",
                                "the body has more than " + std::to_string(kMaxChunks) + " chunks"};
    return piece;
  }
  return Skip(line.text.size() + 2);
}

Piece ChunkedDecoder::ReadTrailer(std::string_view input) {
  const size_t room = kMaxTrailerBytes - std::min(trailer_bytes_, kMaxTrailerBytes);
  const Line line = ReadLine(input, room);
  if (!line.valid) return Broken("the trailers are wrong or too long");
  if (!line.complete) return {};
  trailer_bytes_ += line.text.size() + 2;
  Piece piece = Skip(line.text.size() + 2);
  piece.done = line.text.empty();
  return piece;
}

}  // namespace hippodrome
