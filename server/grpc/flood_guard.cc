#include "server/grpc/flood_guard.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace hippodrome {
namespace {

constexpr size_t kHeader = 9;
// What a sender may choose without asking.
constexpr size_t kMostPayload = 16384;
constexpr int kFewestFrames = 64;
// Of headers that are read, whatever the bytes are.
constexpr int kMostSteps = 1 << 16;

constexpr int kSightings = 3;
constexpr std::chrono::seconds kSightingsIn{1};
constexpr std::chrono::seconds kBarred{10};

enum FrameType : uint8_t {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPushPromise,
  kPing,
  kGoAway,
  kWindowUpdate,
  kContinuation,
};

struct Frame {
  size_t size = 0;  // of its payload
  FrameType type = kData;
  uint8_t flags = 0;
  uint32_t stream = 0;
};

// The lengths and streams that a type may have. Clients send no pushes.
bool IsPossible(const Frame& frame) {
  const bool of_stream = frame.stream % 2 == 1;  // of a client
  const bool of_connection = frame.stream == 0;
  switch (frame.type) {
    case kData:
    case kHeaders:
    case kContinuation:
      return of_stream;
    case kPriority:
      return of_stream && frame.size == 5;
    case kReset:
      return of_stream && frame.size == 4;
    case kSettings:
      return of_connection && frame.size % 6 == 0;
    case kPing:
      return of_connection && frame.size == 8;
    case kGoAway:
      return of_connection && frame.size >= 8;
    case kWindowUpdate:
      return (of_stream || of_connection) && frame.size == 4;
    default:
      return false;
  }
}

std::optional<Frame> FrameAt(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  Frame frame;
  frame.size = byte(0) << 16 | byte(1) << 8 | byte(2);
  if (frame.size > kMostPayload || byte(3) > kContinuation) return std::nullopt;
  frame.type = static_cast<FrameType>(byte(3));
  frame.flags = static_cast<uint8_t>(byte(4));
  frame.stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
  if (!IsPossible(frame)) return std::nullopt;
  return frame;
}

// What makes work and carries nothing.
bool IsIdle(const Frame& frame) {
  constexpr uint8_t kEnd = 1;  // END_STREAM; ACK of others
  return frame.type == kPing || frame.type == kSettings || frame.type == kReset ||
         frame.type == kPriority ||
         (frame.type == kData && frame.size == 0 && (frame.flags & kEnd) == 0);
}

// A part of a header block, and neither its first nor its last.
bool IsMiddle(const Frame& frame) {
  constexpr uint8_t kEndHeaders = 4;
  return frame.type == kContinuation && (frame.flags & kEndHeaders) == 0;
}

// Whether the frames that begin with the first byte are a flood. Takes from `steps`.
bool IsFloodFromHere(std::string_view bytes, int& steps) {
  int frames = 0, idle = 0, middles = 0;
  while (bytes.size() >= kHeader) {
    if (--steps < 0) return false;
    const std::optional<Frame> frame = FrameAt(bytes);
    if (!frame) return false;
    ++frames;
    idle += IsIdle(*frame) ? 1 : 0;
    middles += IsMiddle(*frame) ? 1 : 0;
    bytes.remove_prefix(std::min(bytes.size(), kHeader + frame->size));
  }
  return (frames >= kFewestFrames && 2 * idle >= frames - 1) || middles >= 2;
}

}  // namespace

bool IsFlood(std::string_view bytes) {
  int steps = kMostSteps;
  for (size_t begin = 0; begin <= kMostPayload + kHeader && begin < bytes.size(); ++begin) {
    if (IsFloodFromHere(bytes.substr(begin), steps)) return true;
  }
  return false;
}

bool FloodWaits(int socket) {
  int waiting = 0;
  if (ioctl(socket, FIONREAD, &waiting) != 0 || waiting < static_cast<int>(kFloodSample)) {
    return false;
  }
  std::array<char, kFloodSample> bytes;
  const ssize_t count = recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return count > 0 && IsFlood({bytes.data(), static_cast<size_t>(count)});
}

bool FloodGuard::Saw(const std::string& client, Clock::time_point now) {
  std::erase_if(clients_, [now](const auto& entry) {
    return now - entry.second.since > kSightingsIn && now >= entry.second.barred_until;
  });
  Floods& floods = clients_.try_emplace(client, Floods{.since = now}).first->second;
  if (++floods.seen < kSightings) return false;
  floods.barred_until = now + kBarred;
  return true;
}

bool FloodGuard::Bars(const std::string& client, Clock::time_point now) const {
  const auto floods = clients_.find(client);
  return floods != clients_.end() && now < floods->second.barred_until;
}

}  // namespace hippodrome
