#include "tools/mpi/collectives.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <thread>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr int kCollectiveTag = 0;
// A message within a machine takes microseconds, so that waits begin awake.
constexpr int kPausesAwake = 200;
constexpr auto kNap = std::chrono::microseconds(50);
constexpr auto kLongWait = std::chrono::milliseconds(200);

}  // namespace

std::string RankName(int rank, const std::string& host) {
  return "rank " + std::to_string(rank) + " (" + host + ")";
}

Patience::Patience(Communicator& ranks)
    : ranks_(ranks), next_call_(std::chrono::steady_clock::now() + kLongWait) {}

void Patience::Pause(int peer) {
  if (pauses_++ < kPausesAwake) return std::this_thread::yield();
  std::this_thread::sleep_for(kNap);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_call_) return;
  next_call_ = now + kLongWait;
  if (ranks_.on_long_wait()) ranks_.on_long_wait()(peer);
}

void Wait(Communicator& ranks, Communicator::Transfer transfer, int peer) {
  Patience patience(ranks);
  while (!ranks.Done(transfer)) patience.Pause(peer);
}

void Broadcast(Communicator& ranks, int root, std::span<std::byte> bytes) {
  if (ranks.rank() != root) return Wait(ranks, ranks.Receive(root, kCollectiveTag, bytes), root);
  std::map<int, Communicator::Transfer> sends;
  for (int to = 0; to < ranks.size(); ++to) {
    if (to != root) sends[to] = ranks.Send(to, kCollectiveTag, bytes);
  }
  for (const auto& [to, send] : sends) Wait(ranks, send, to);
}

std::vector<std::byte> AllGather(Communicator& ranks, std::span<const std::byte> bytes) {
  std::vector<std::byte> all(bytes.size() * static_cast<size_t>(ranks.size()));
  const auto place = [&](int of) {
    return std::span(all).subspan(bytes.size() * static_cast<size_t>(of), bytes.size());
  };
  std::ranges::copy(bytes, place(ranks.rank()).begin());
  if (ranks.rank() == 0) {
    std::map<int, Communicator::Transfer> receives;
    for (int from = 1; from < ranks.size(); ++from) {
      receives[from] = ranks.Receive(from, kCollectiveTag, place(from));
    }
    for (const auto& [from, receive] : receives) Wait(ranks, receive, from);
  } else {
    Wait(ranks, ranks.Send(0, kCollectiveTag, place(ranks.rank())), 0);
  }
  Broadcast(ranks, 0, all);
  return all;
}

std::vector<std::string> AllGather(Communicator& ranks, const std::string& text) {
  const uint64_t length = text.size();
  const std::vector<std::byte> gathered = AllGather(ranks, std::as_bytes(std::span(&length, 1)));
  std::vector<uint64_t> lengths(static_cast<size_t>(ranks.size()));
  std::memcpy(lengths.data(), gathered.data(), gathered.size());
  const uint64_t longest = *std::ranges::max_element(lengths);
  std::string padded = text;
  padded.resize(longest);
  const std::vector<std::byte> all = AllGather(ranks, std::as_bytes(std::span(padded)));
  std::vector<std::string> texts;
  for (size_t of = 0; of < lengths.size(); ++of) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data()) + of * longest, lengths[of]);
  }
  return texts;
}

void Barrier(Communicator& ranks) {
  constexpr std::byte kHere = {};
  AllGather(ranks, std::span(&kHere, 1));
}

absl::Status Agree(Communicator& ranks, const absl::Status& status) {
  std::string said;
  if (!status.ok()) {
    said = static_cast<char>(status.code()) + RankName(ranks.rank(), ranks.host()) + ": " +
           Message(status);
  }
  for (const std::string& one : AllGather(ranks, said)) {
    if (one.empty()) continue;
    return {static_cast<absl::StatusCode>(one[0]), one.substr(1)};
  }
  return absl::OkStatus();
}

bool AnyOf(Communicator& ranks, bool value) {
  const std::byte mine{static_cast<unsigned char>(value)};
  return std::ranges::count(AllGather(ranks, std::span(&mine, 1)), std::byte{1}) > 0;
}

absl::Status SameOnAll(Communicator& ranks, const std::string& what, const std::string& text) {
  const std::vector<std::string> texts = AllGather(ranks, text);
  const std::vector<std::string> hosts = AllGather(ranks, ranks.host());
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    return FailedPrecondition(RankName(static_cast<int>(rank), hosts[rank]) + " has another " +
                              what + " than " + RankName(0, hosts[0]));
  }
  return absl::OkStatus();
}

LocalRanks FindLocalRanks(Communicator& ranks) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  std::string processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) processors += CPU_ISSET(i, &usable) ? '1' : '0';
  const std::vector<std::string> hosts = AllGather(ranks, ranks.host());
  const std::vector<std::string> sets = AllGather(ranks, processors);
  LocalRanks local = {.index = 0, .count = 0, .processors = 1};
  int sharing = 0;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    if (hosts[rank] != ranks.host()) continue;
    if (static_cast<int>(rank) == ranks.rank()) local.index = local.count;
    ++local.count;
    sharing += sets[rank] == processors ? 1 : 0;
  }
  local.processors = std::max(1, CPU_COUNT(&usable) / sharing);
  return local;
}

}  // namespace hippodrome
