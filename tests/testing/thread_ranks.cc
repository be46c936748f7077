#include "tests/testing/thread_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <vector>

namespace hippodrome {
namespace {

// A message from a rank to another that was not received yet: its copy, or the sender's bytes.
struct Letter {
  std::vector<std::byte> copy;
  std::span<const std::byte> bytes;
  bool* taken = nullptr;  // what the sender waits for
};

struct PostOffice {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, std::deque<Letter>> letters;  // by from, to, tag
};

class ThreadRank final : public Communicator {
 public:
  ThreadRank(PostOffice& office, int rank, int size) : office_(office), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return "here"; }

  Transfer Send(int to, int tag, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(office_.mutex);
    Pending& pending = pending_[next_];
    Letter& letter = office_.letters[{rank_, to, tag}].emplace_back();
    if (next_ % 2 == 0) {
      letter.copy.assign(bytes.begin(), bytes.end());
      pending.taken = true;
    } else {
      letter.bytes = bytes;
      letter.taken = &pending.taken;
    }
    return next_++;
  }
  Transfer Receive(int from, int tag, std::span<std::byte> bytes) override {
    pending_[next_] = {.receives = true, .from = from, .tag = tag, .bytes = bytes};
    return next_++;
  }
  bool Done(Transfer transfer) override {
    const std::lock_guard lock(office_.mutex);
    Pending& pending = pending_.at(transfer);
    if (pending.receives && First(transfer, pending)) TakeIn(pending);
    if (!pending.taken) return false;
    pending_.erase(transfer);
    return true;
  }
  [[noreturn]] void Abort(int) override { throw std::runtime_error("aborted"); }

 private:
  struct Pending {
    bool taken = false;
    bool receives = false;
    int from = 0;
    int tag = 0;
    std::span<std::byte> bytes;
  };

  // Receives are served in the order in which they began.
  bool First(Transfer transfer, const Pending& pending) {
    return std::ranges::none_of(pending_, [&](const auto& other) {
      return other.first < transfer && other.second.receives && !other.second.taken &&
             other.second.from == pending.from && other.second.tag == pending.tag;
    });
  }
  void TakeIn(Pending& pending) {
    auto& letters = office_.letters[{pending.from, rank_, pending.tag}];
    if (letters.empty()) return;
    const Letter letter = std::move(letters.front());
    letters.pop_front();
    const auto bytes =
        letter.taken == nullptr ? std::span<const std::byte>(letter.copy) : letter.bytes;
    if (bytes.size() != pending.bytes.size()) throw std::logic_error("a message of another size");
    std::ranges::copy(bytes, pending.bytes.begin());
    if (letter.taken != nullptr) *letter.taken = true;
    pending.taken = true;
  }

  PostOffice& office_;
  const int rank_;
  const int size_;
  Transfer next_ = 0;
  std::map<Transfer, Pending> pending_;
};

}  // namespace

void RunRanks(int count, const std::function<void(Communicator&)>& work) {
  PostOffice office;
  std::deque<ThreadRank> ranks;
  std::vector<std::future<void>> threads;
  for (int rank = 0; rank < count; ++rank) {
    Communicator& one = ranks.emplace_back(office, rank, count);
    threads.push_back(std::async(std::launch::async, [&work, &one] { work(one); }));
  }
  for (std::future<void>& thread : threads) thread.wait();
  for (std::future<void>& thread : threads) thread.get();
}

}  // namespace hippodrome
