// The processes of one job, which were started together and send each other messages.
#ifndef HIPPODROME_TOOLS_MPI_COMMUNICATOR_H_
#define HIPPODROME_TOOLS_MPI_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace hippodrome {

// Ranks are numbered from 0. One thread at a time uses it. What fails beyond this process (a rank
// that died, a network that broke) is the launcher's to notice: it ends the job.
class Communicator {
 public:
  using Transfer = int64_t;

  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The name of the machine of this rank.
  virtual std::string host() const = 0;

  // Begin to move `bytes` between this rank and another; they must stay as they are until Done().
  // Messages of the same two ranks and `tag` arrive in the order in which they were sent, and must
  // be received in the sizes in which they were. Tag 0 is that of collectives.h.
  virtual Transfer Send(int to, int tag, std::span<const std::byte> bytes) = 0;
  virtual Transfer Receive(int from, int tag, std::span<std::byte> bytes) = 0;
  // Whether it has ended: true once, after which the transfer is no more. Moves all transfers on.
  virtual bool Done(Transfer transfer) = 0;

  // Ends the processes of all ranks; this one with `status`.
  [[noreturn]] virtual void Abort(int status) = 0;

  // What is called, a few times a second, while this rank waits for long (collectives.h).
  void OnLongWait(std::function<void(int peer)> call) { on_long_wait_ = std::move(call); }
  const std::function<void(int peer)>& on_long_wait() const { return on_long_wait_; }

 private:
  std::function<void(int peer)> on_long_wait_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_MPI_COMMUNICATOR_H_
