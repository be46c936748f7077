// Any bytes are requests or a refusal. What was taken has one end only: whatever the bytes are cut
// into, the same heads and bodies come out.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/http/chunked_body.h"
#include "server/http/http_head.h"

namespace {

using hippodrome::ChunkedDecoder;
using hippodrome::RequestHead;

// The body at the start of `input` and how much it takes, as far as it is complete and right.
struct Body {
  std::string data;
  size_t taken = 0;
  bool complete = false;
};

Body Decode(std::string_view input, size_t piece) {
  Body body;
  ChunkedDecoder decoder;
  size_t come = 0;
  while (!body.complete) {
    const ChunkedDecoder::Piece next = decoder.Next(input.substr(body.taken, come - body.taken));
    if (next.refusal) return {};
    body.data += next.data;
    body.taken += next.consumed;
    body.complete = next.done;
    if (next.consumed > 0) continue;
    if (come == input.size()) return {};
    come = std::min(input.size(), come + piece);
  }
  return body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  while (const auto end = hippodrome::FindHeadEnd(input, 0)) {
    RequestHead head;
    if (hippodrome::ParseHead(input.substr(0, *end), head)) return 0;
    if (head.path.empty() || (head.chunked && head.content_length != 0)) std::abort();
    input.remove_prefix(*end);
    if (!head.chunked) {
      if (head.content_length > static_cast<int64_t>(input.size())) return 0;
      input.remove_prefix(static_cast<size_t>(head.content_length));
      continue;
    }
    const Body whole = Decode(input, input.size() + 1);
    const Body cut = Decode(input, 1);
    if (whole.complete != cut.complete || whole.data != cut.data || whole.taken != cut.taken) {
      std::abort();
    }
    if (!whole.complete) return 0;
    input.remove_prefix(whole.taken);
  }
  return 0;
}
