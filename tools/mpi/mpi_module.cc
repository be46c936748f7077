// A Communicator over MPI, the only source that knows MPI. Errors of MPI end the job, as they do by
// default: its own message says which rank of which machine met them.
#include "tools/mpi/mpi_module.h"

#include <mpi.h>

#include <cassert>
#include <climits>
#include <cstdlib>
#include <map>

#include "tools/mpi/communicator.h"

namespace hippodrome {
namespace {

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiCommunicator() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = 0;
    MPI_Get_processor_name(name, &length);
    return {name, static_cast<size_t>(length)};
  }

  Transfer Send(int to, int tag, std::span<const std::byte> bytes) override {
    assert(bytes.size() <= INT_MAX);
    MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD,
              &requests_[next_]);
    return next_++;
  }
  Transfer Receive(int from, int tag, std::span<std::byte> bytes) override {
    assert(bytes.size() <= INT_MAX);
    MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, tag, MPI_COMM_WORLD,
              &requests_[next_]);
    return next_++;
  }
  bool Done(Transfer transfer) override {
    const auto request = requests_.find(transfer);
    assert(request != requests_.end());
    int done = 0;
    MPI_Test(&request->second, &done, MPI_STATUS_IGNORE);
    if (done != 0) requests_.erase(request);
    return done != 0;
  }

  [[noreturn]] void Abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }

 private:
  int rank_ = 0;
  int size_ = 1;
  Transfer next_ = 0;
  std::map<Transfer, MPI_Request> requests_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) Communicator* hippodrome_open_mpi(
    std::string& obstacle) {
  int provided = 0;
  // Threads compute, but only one calls MPI.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    obstacle = "MPI_Init failed";
    return nullptr;
  }
  return new MpiCommunicator;
}

}  // namespace hippodrome
