// The calls of one kind that are here now.
#ifndef HIPPODROME_SERVER_GRPC_LIVE_CALLS_H_
#define HIPPODROME_SERVER_GRPC_LIVE_CALLS_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace hippodrome {

// For calls that have no end of their own: a server that stops must end them, lest it wait for
// them. Thread-safe.
template <typename Call>
class LiveCalls {
 public:
  // False after Close(): the call must end at once.
  bool Add(const std::shared_ptr<Call>& call) {
    std::lock_guard lock(mutex_);
    std::erase_if(calls_, [](const auto& weak) { return weak.expired(); });
    calls_.push_back(call);
    return !closed_;
  }

  std::vector<std::shared_ptr<Call>> All() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Call>> all;
    for (const auto& weak : calls_) {
      if (auto call = weak.lock()) all.push_back(std::move(call));
    }
    return all;
  }

  // Takes no more. The calls that are here.
  std::vector<std::shared_ptr<Call>> Close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    return All();
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Call>> calls_;
  bool closed_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_GRPC_LIVE_CALLS_H_
