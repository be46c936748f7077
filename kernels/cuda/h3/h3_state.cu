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

// x[n] = sum_{j <= n} B[n - j] u_{T - j}.  recent: u_T, u_{T-1}, ...
void ExportChannel(const float* b, const std::vector<float>& recent, float* x) {
  for (size_t n = 0; n < recent.size(); ++n) {
    double sum = 0;
    for (size_t j = 0; j <= n; ++j) sum += double{b[n - j]} * recent[j];
    x[n] = static_cast<float>(sum);
  }
}

template <typename T>
std::vector<float> ExportShift(const H3PrefillWeights& constants, const std::vector<T>& rings,
                               int64_t position) {
  const int64_t taps = constants.view().taps;
  std::vector<float> shift(rings.size());
  std::vector<float> recent(static_cast<size_t>(taps));
  for (int64_t channel = 0; channel < constants.view().d_model; ++channel) {
    const T* ring = rings.data() + channel * taps;
    for (int64_t j = 0; j < taps; ++j) {
      recent[static_cast<size_t>(j)] = Widened(ring[(position % taps - 1 - j + 2 * taps) % taps]);
    }
    ExportChannel(constants.shift_b().data() + channel * taps, recent,
                  shift.data() + channel * taps);
  }
  return shift;
}

// Row (head, d1, d2) becomes [d1, d2, head] and s becomes x = dB s.
std::vector<float> ExportDiagonal(const H3PrefillWeights& constants,
                                  const std::vector<float2>& rows) {
  const int64_t heads = constants.view().heads;
  const int64_t modes = constants.view().modes;
  const int64_t square = int64_t{constants.view().head_dim} * constants.view().head_dim;
  std::vector<float> diagonal(rows.size() * 2);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t pair = 0; pair < square; ++pair) {
      const float2* from = rows.data() + (head * square + pair) * modes;
      float* to = diagonal.data() + (pair * heads + head) * modes * 2;
      for (int64_t n = 0; n < modes; ++n) {
        const std::complex<float> x = std::complex<float>(from[n].x, from[n].y) *
                                      constants.db()[static_cast<size_t>(head * modes + n)];
        to[2 * n] = x.real();
        to[2 * n + 1] = x.imag();
      }
    }
  }
  return diagonal;
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
H3StateExport Export(Device& device, const H3PrefillWeights& constants, const H3Slots& state,
                     int64_t slot, int64_t position) {
  const H3View& v = constants.view();
  const int64_t ring_values = int64_t{v.d_model} * v.taps;
  const int64_t mode_values = int64_t{v.d_model} * v.head_dim * v.modes;
  const H3StateView<T> view = state.view<T>();
  std::vector<T> rings = Fetch<T>(device, view.rings + slot * ring_values, ring_values);
  std::vector<float2> rows = Fetch<float2>(device, view.modes + slot * mode_values, mode_values);
  device.Finish(kExport);
  if (state.looks_ahead()) Absorb(device, constants, state, slot, position, rings, rows);
  return {.shift = ExportShift(constants, rings, position),
          .diagonal = ExportDiagonal(constants, rows)};
}

}  // namespace

H3Slots::H3Slots(Device& device, const H3PrefillWeights& constants, int64_t slots) : slots_(slots) {
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

H3StateExport ExportSlot(Device& device, const H3PrefillWeights& constants, const H3Slots& state,
                         int64_t slot, int64_t position) {
  assert(slot >= 0 && slot < state.slots());
  return constants.activations() == DType::kBF16
             ? Export<BF16>(device, constants, state, slot, position)
             : Export<float>(device, constants, state, slot, position);
}

}  // namespace hippodrome::cuda
