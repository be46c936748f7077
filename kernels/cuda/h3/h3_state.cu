#include "kernels/cuda/h3/h3_state.h"

#include <cassert>

namespace hippodrome::cuda {
namespace {

constexpr const char* kReset = "reset_slot";
constexpr const char* kCopy = "copy_slot";
constexpr const char* kExport = "export_slot";

void Clear(Device& device, void* to, int64_t bytes) {
  device.Note(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), device.stream()), kReset);
}

void CopyOnDevice(Device& device, const void* from, void* to, int64_t bytes) {
  device.Note(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                              device.stream()),
              kCopy);
}

// `count` values from device memory; they are there after Device::Finish().
template <typename Value>
std::vector<Value> Fetch(Device& device, const Value* from, int64_t count) {
  std::vector<Value> values(static_cast<size_t>(count));
  device.Note(cudaMemcpyAsync(values.data(), from, values.size() * sizeof(Value),
                              cudaMemcpyDeviceToHost, device.stream()),
              kExport);
  return values;
}

float Widened(float x) { return x; }
float Widened(BF16 x) { return ToFloat(x); }

// [d, N], oldest first.
template <typename T>
void ExportInputs(const H3View& h3, const std::vector<T>& rings, int64_t position,
                  std::span<float> inputs) {
  for (int64_t i = 0; i < int64_t{h3.d_model} * h3.taps; ++i) {
    const int64_t channel = i / h3.taps;
    const int64_t at = (position + i % h3.taps) % h3.taps;
    inputs[static_cast<size_t>(i)] = Widened(rings[static_cast<size_t>(channel * h3.taps + at)]);
  }
}

// Row (head, d1, d2) becomes [d1, d2, head].
void ExportModes(const H3View& h3, const std::vector<float2>& rows, std::span<float> modes) {
  const int64_t square = int64_t{h3.head_dim} * h3.head_dim;
  for (int64_t head = 0; head < h3.heads; ++head) {
    for (int64_t pair = 0; pair < square; ++pair) {
      const float2* from = rows.data() + (head * square + pair) * h3.modes;
      float* to = modes.data() + (pair * h3.heads + head) * h3.modes * 2;
      for (int64_t n = 0; n < h3.modes; ++n) {
        to[2 * n] = from[n].x;
        to[2 * n + 1] = from[n].y;
      }
    }
  }
}

// Takes the pending tokens, if there are any, into rings and modes.
template <typename T>
void Absorb(Device& device, const H3PrefillWeights& constants, const H3Slots& state, int64_t slot,
            int64_t position, std::vector<T>& rings, std::vector<float2>& rows) {
  const int64_t d = constants.view().d_model;
  const int64_t modes = constants.view().modes;
  const AheadSlot<T> ahead(state.ahead(), slot, d);
  const std::vector<float> sums = Fetch<float>(device, ahead.sums, kAheadSteps * d);
  const std::vector<T> keys = Fetch<T>(device, ahead.keys, kAheadSteps * d);
  const std::vector<int32_t> bases = Fetch<int32_t>(device, ahead.bases, 1);
  const std::vector<float2> a = Fetch(device, constants.view().a, d * modes);
  device.Finish(kExport);
  const int32_t pending = PendingTokens(bases[0], static_cast<int32_t>(position));
  for (int64_t p = position - pending; p < position; ++p) {
    for (int64_t channel = 0; channel < d; ++channel) {
      const auto at = static_cast<size_t>(p % kAheadSteps * d + channel);
      rings[static_cast<size_t>(channel * kAheadTaps + p % kAheadTaps)] = keys[at];
      for (int64_t n = channel * modes; n < (channel + 1) * modes; ++n) {
        const float2 b = a[static_cast<size_t>(n)];
        float2& s = rows[static_cast<size_t>(n)];
        s = {b.x * s.x - b.y * s.y + sums[at], b.x * s.y + b.y * s.x};
      }
    }
  }
}

template <typename T>
void ExportAs(Device& device, const H3PrefillWeights& constants, const H3Slots& state, int64_t slot,
              int64_t position, std::span<const std::span<float>> arrays) {
  const H3View& v = constants.view();
  const int64_t ring_values = int64_t{v.d_model} * v.taps;
  const int64_t mode_values = int64_t{v.d_model} * v.head_dim * v.modes;
  const H3StateView<T> view = state.view<T>();
  std::vector<T> rings = Fetch<T>(device, view.rings + slot * ring_values, ring_values);
  std::vector<float2> rows = Fetch<float2>(device, view.modes + slot * mode_values, mode_values);
  device.Finish(kExport);
  if (state.looks_ahead()) Absorb(device, constants, state, slot, position, rings, rows);
  ExportInputs(v, rings, position, arrays[0]);
  ExportModes(v, rows, arrays[1]);
}

}  // namespace

H3Slots::H3Slots(Device& device, const H3PrefillWeights& constants, int64_t slots)
    : constants_(constants), slots_(slots) {
  const H3View& h3 = constants.view();
  const auto activation = static_cast<int64_t>(SizeOf(constants.activations()));
  const auto complex = static_cast<int64_t>(sizeof(float2));
  rings_.bytes = int64_t{h3.d_model} * h3.taps * activation;
  modes_.bytes = int64_t{h3.d_model} * h3.head_dim * h3.modes * complex;
  if (slots >= kLookaheadSlots && CanLookAhead(h3)) {
    ahead_.bytes = AheadBytes(h3.d_model, activation);
  }
  for (Part* part : {&rings_, &modes_, &ahead_}) {
    part->memory = AllocateZeroed(device, static_cast<size_t>(slots * part->bytes));
  }
}

int64_t H3Slots::bytes_per_slot() const { return rings_.bytes + modes_.bytes + ahead_.bytes; }

std::array<H3Slots::Place, 3> H3Slots::Places(int64_t slot) const {
  assert(slot >= 0 && slot < slots_);
  const auto place = [slot](const Part& part) {
    return Place{static_cast<char*>(part.memory.get()) + slot * part.bytes, part.bytes};
  };
  return {place(rings_), place(modes_), place(ahead_)};
}

void H3Slots::Reset(Device& device, int64_t slot) {
  for (const Place& place : Places(slot)) {
    if (place.bytes > 0) Clear(device, place.begin, place.bytes);
  }
}

void H3Slots::Copy(Device& device, int64_t from, int64_t to) {
  if (from == to) return;
  const std::array<Place, 3> source = Places(from);
  const std::array<Place, 3> target = Places(to);
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i].bytes == 0) continue;
    CopyOnDevice(device, source[i].begin, target[i].begin, source[i].bytes);
  }
}

std::vector<StateArray> H3Slots::arrays() const {
  const H3View& v = constants_.view();
  return H3StateArrays(v.heads, v.head_dim, v.taps);
}

void H3Slots::Export(Device& device, int64_t slot, int64_t position,
                     std::span<const std::span<float>> arrays) const {
  assert(slot >= 0 && slot < slots_ && arrays.size() == 2);
  constants_.activations() == DType::kBF16
      ? ExportAs<BF16>(device, constants_, *this, slot, position, arrays)
      : ExportAs<float>(device, constants_, *this, slot, position, arrays);
}

}  // namespace hippodrome::cuda
