// Hands the results of one request from the batcher's loop thread to a transport.
#ifndef HIPPODROME_SERVER_TOKEN_STREAM_H_
#define HIPPODROME_SERVER_TOKEN_STREAM_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hippodrome {

enum class StreamFinish : uint8_t { kNone, kStop, kLength };

// What happened since the last look. The stream is over when `finish` is set or `status` is an
// error.
struct StreamUpdate {
  std::string text;
  std::vector<int32_t> token_ids;
  StreamFinish finish = StreamFinish::kNone;
  absl::Status status;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;  // so far

  bool last() const { return finish != StreamFinish::kNone || !status.ok(); }
};

// A bounded buffer with one writer and one reader. Updates that the reader has not taken are
// merged, so a slow reader costs memory for its text alone, and never stops the writer.
// Thread-safe.
class TokenStream {
 public:
  // At most `max_unread_tokens` wait for the reader.
  explicit TokenStream(int64_t max_unread_tokens) : max_unread_tokens_(max_unread_tokens) {}

  // Reader. `wake` is called on the writer's thread whenever something waits that was not announced
  // yet, and at once if so now; it must be cheap and must not call OnUpdate(). When OnUpdate()
  // returns, the previous `wake` does not run and will not be called again.
  void OnUpdate(std::function<void()> wake);
  // Everything since the last call, or nothing.
  std::optional<StreamUpdate> Take();

  // Writer. False, with nothing added, when the reader is too far behind.
  bool Push(StreamUpdate update);
  // Ends the stream with an error, whatever is unread.
  void Fail(const absl::Status& status);
  // True once the last update was pushed.
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  void Announce();

  const int64_t max_unread_tokens_;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;  // guards unread_
  std::optional<StreamUpdate> unread_;
  std::mutex wake_mutex_;  // guards wake_ and is held while it runs
  std::function<void()> wake_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_TOKEN_STREAM_H_
