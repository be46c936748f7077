// A body that is sent in chunks (RFC 9112, 7.1).
#ifndef HIPPODROME_SERVER_HTTP_CHUNKED_BODY_H_
#define HIPPODROME_SERVER_HTTP_CHUNKED_BODY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "server/http/http_head.h"

namespace hippodrome {

// Finds the data in the bytes as they come, without keeping any. Extensions and trailers are read
// over. Not thread-safe.
class ChunkedDecoder {
 public:
  // Tiny chunks cost far more than what they carry.
  static constexpr int64_t kMaxChunks = 65536;

  struct Piece {
    size_t consumed = 0;    // of the input; 0: more is needed
    std::string_view data;  // within the input
    bool done = false;      // the body ended where `consumed` says
    std::optional<HttpRefusal> refusal;
  };
  // What the next bytes are. Call it until it consumes nothing, or the body ends.
  Piece Next(std::string_view input);

 private:
  enum class State : uint8_t { kSize, kData, kDataEnd, kTrailer };
  Piece ReadSize(std::string_view input);
  Piece ReadTrailer(std::string_view input);

  State state_ = State::kSize;
  int64_t left_ = 0;  // of the chunk
  int64_t chunks_ = 0;
  size_t trailer_bytes_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_CHUNKED_BODY_H_
