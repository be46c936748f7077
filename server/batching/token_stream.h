// Hands the results of one request from the batcher's loop thread to a transport.
#ifndef HIPPODROME_SERVER_BATCHING_TOKEN_STREAM_H_
#define HIPPODROME_SERVER_BATCHING_TOKEN_STREAM_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/generator.h"

namespace hippodrome {

namespace v1 {
class State;
}  // namespace v1

// kMigrated: the server stops, and another one can go on from the state.
enum class StreamFinish : uint8_t { kNone, kStopString, kEndOfText, kLength, kMigrated };

// One step of a request: a token with the text that it completes. The stream is over when `finish`
// is set or `status` is an error.
struct StreamUpdate {
  std::string text;
  std::vector<int32_t> token_ids;
  // Where the request asks for them: of `token_ids`, and on the first update, with score_prompt, of
  // the prompt's tokens, as in TokenEvent.
  std::vector<TokenScores> scores;
  std::vector<TokenScores> prompt_scores;
  StreamFinish finish = StreamFinish::kNone;
  absl::Status status;
  int64_t prompt_tokens = 0;      // those of a state that it went on from included
  int64_t cached_tokens = 0;      // of these, those that were not taken in again
  int64_t completion_tokens = 0;  // so far
  // With the last update, where the request asks for it, and where it is migrated.
  std::shared_ptr<const v1::State> state = nullptr;

  bool last() const { return finish != StreamFinish::kNone || !status.ok(); }
};

// A bounded queue with one writer and one reader, who gets every update by itself, so that clients
// see token by token. A slow reader never stops the writer. Thread-safe.
class TokenStream {
 public:
  // At most `max_unread_tokens` wait for the reader.
  explicit TokenStream(int64_t max_unread_tokens) : max_unread_tokens_(max_unread_tokens) {}

  // Reader. `wake` is called on the writer's thread when `tokens` tokens (or as many as may wait)
  // or the last update wait after less did, and at once if they wait now; whoever is woken takes
  // until nothing is left. It must be cheap and must not call OnUpdate(). When OnUpdate() returns,
  // the previous `wake` does not run and will not be called again. REQUIRES: tokens >= 1.
  void OnUpdate(std::function<void()> wake, int64_t tokens = 1);
  // The oldest update that was not taken yet, or nothing.
  std::optional<StreamUpdate> Take();

  // Writer. False, with nothing added, when the reader is too far behind.
  bool Push(StreamUpdate update);
  // Ends the stream with an error behind whatever is unread.
  void Fail(const absl::Status& status);
  // True once the last update was pushed.
  bool ended() const { return ended_.load(std::memory_order_acquire); }

 private:
  // Whether the reader must be told now.
  bool Append(StreamUpdate update);
  // Whether what is unread is worth waking the reader for.
  bool Due() const;
  void Announce();

  const int64_t max_unread_tokens_;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;  // guards the next three
  std::deque<StreamUpdate> unread_;
  int64_t unread_tokens_ = 0;
  int64_t wake_tokens_ = 1;
  std::mutex wake_mutex_;  // guards wake_ and is held while it runs
  std::function<void()> wake_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHING_TOKEN_STREAM_H_
