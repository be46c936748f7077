#include "kernels/cuda/h3/h3_exchange.h"

#include <algorithm>
#include <cassert>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kExchangeThreads = 256;

// A slot, and its exchanged arrays in scratch memory.
template <typename T>
struct ExchangedSlot {
  H3View h3;
  T* rings;       // of the slot
  float2* modes;  // of the slot
  void* ahead;    // of all slots; null: nothing looks ahead
  int64_t slot;
  int32_t position;
  float* shift_inputs;      // [d, N], oldest first
  float2* exchanged_modes;  // [h_1, h_2, H, M]
  float* pending;           // [P, h_1, h_2, H], to be imported
  int32_t pending_tokens;   // P

  __host__ __device__ int64_t ring_values() const { return int64_t{h3.d_model} * h3.taps; }
  __host__ __device__ int64_t mode_values() const { return exchanged_rows() * h3.modes; }
  __host__ __device__ int64_t exchanged_rows() const { return int64_t{h3.d_model} * h3.head_dim; }

  // Position of the token whose key shift_inputs holds at i; negative before the first token.
  __device__ int32_t TokenAt(int64_t i) const {
    return position - h3.taps + static_cast<int32_t>(i % h3.taps);
  }
  // Where the ring has the key of shift_inputs at i.
  __device__ T* Ring(int64_t i) const {
    return rings + i / h3.taps * h3.taps + (TokenAt(i) + h3.taps) % h3.taps;
  }
  // Where the row of the mode of the slot at i is exchanged: (head, d1, d2) becomes [d1, d2, head].
  __device__ int64_t ExchangedRow(int64_t i) const {
    const int64_t row = i / h3.modes;
    const int64_t square = int64_t{h3.head_dim} * h3.head_dim;
    return row % square * h3.heads + row / square;
  }
  __device__ float2* Exchanged(int64_t i) const {
    return exchanged_modes + ExchangedRow(i) * h3.modes + i % h3.modes;
  }

  __device__ AheadSlot<T> Ahead() const { return {ahead, slot, h3.d_model}; }
  // Tokens that wait outside of ring and modes.
  __device__ int32_t Pending(int64_t channel) const {
    return ahead == nullptr ? 0 : PendingTokens(Ahead().bases[channel / kAheadChannels], position);
  }
  // In the rows of Ahead().
  __device__ int64_t AheadRow(int32_t token, int64_t channel) const {
    return int64_t{token % kAheadSteps} * h3.d_model + channel;
  }

  __device__ float ShiftInput(int64_t i) const {
    const int32_t token = TokenAt(i);
    if (token < 0) return 0;
    const int64_t channel = i / h3.taps;
    const bool waits = token >= position - Pending(channel);
    return Widen(waits ? Ahead().keys[AheadRow(token, channel)] : *Ring(i));
  }

  // The mode of the slot at i after one more token.
  __device__ float2 Advance(int64_t i, float2 s, float kv) const {
    const int64_t head = i / h3.modes / (int64_t{h3.head_dim} * h3.head_dim);
    return ComplexMultiplyAdd(h3.a[head * h3.modes + i % h3.modes], s, make_float2(kv, 0.0f));
  }

  __device__ float2 Mode(int64_t i) const {
    float2 s = modes[i];
    if (ahead == nullptr) return s;
    const int64_t channel = i / h3.modes;  // head_dim is 1
    for (int32_t token = position - Pending(channel); token < position; ++token) {
      const float kv = Ahead().sums[AheadRow(token, channel)];
      s = Advance(i, s, kv);
    }
    return s;
  }

  __device__ float2 ImportedMode(int64_t i) const {
    float2 s = *Exchanged(i);
    for (int32_t token = 0; token < pending_tokens; ++token) {
      s = Advance(i, s, pending[token * exchanged_rows() + ExchangedRow(i)]);
    }
    return s;
  }
};

// A thread for each value of the longer array.
template <typename T>
__global__ void __launch_bounds__(kExchangeThreads) ExportKernel(const ExchangedSlot<T> x) {
  const int64_t i = int64_t{blockIdx.x} * kExchangeThreads + threadIdx.x;
  if (i < x.ring_values()) x.shift_inputs[i] = x.ShiftInput(i);
  if (i < x.mode_values()) *x.Exchanged(i) = x.Mode(i);
}

template <typename T>
__global__ void __launch_bounds__(kExchangeThreads) ImportKernel(const ExchangedSlot<T> x) {
  const int64_t i = int64_t{blockIdx.x} * kExchangeThreads + threadIdx.x;
  if (i < x.ring_values()) *x.Ring(i) = FromFloat<T>(x.shift_inputs[i]);
  if (i < x.mode_values()) x.modes[i] = x.ImportedMode(i);
  if (x.ahead != nullptr && i < AheadGroups(x.h3.d_model)) x.Ahead().bases[i] = x.position;
}

template <typename T>
ExchangedSlot<T> Exchange(Device& device, const H3Slots& state, int64_t slot, int64_t position) {
  assert(slot >= 0 && slot < state.slots());
  ExchangedSlot<T> x = {.h3 = state.constants().view(),
                        .rings = nullptr,
                        .modes = nullptr,
                        .ahead = state.ahead(),
                        .slot = slot,
                        .position = static_cast<int32_t>(position),
                        .shift_inputs = nullptr,
                        .exchanged_modes = nullptr,
                        .pending = nullptr,
                        .pending_tokens = 0};
  x.rings = state.view<T>().rings + slot * x.ring_values();
  x.modes = state.view<T>().modes + slot * x.mode_values();
  const size_t modes = static_cast<size_t>(x.mode_values());
  const size_t inputs = static_cast<size_t>(x.ring_values());
  const size_t pending = static_cast<size_t>((kCaptureTokens - 1) * x.exchanged_rows());
  void* scratch = device.Scratch(ScratchUse::kStateExchange,
                                 modes * sizeof(float2) + (inputs + pending) * sizeof(float));
  x.exchanged_modes = static_cast<float2*>(scratch);
  x.shift_inputs = reinterpret_cast<float*>(x.exchanged_modes + modes);
  x.pending = x.shift_inputs + inputs;
  return x;
}

template <typename T>
void Run(Device& device, const char* operation, void (*kernel)(ExchangedSlot<T>),
         const ExchangedSlot<T>& x) {
  const int64_t values = std::max(x.ring_values(), x.mode_values());
  const int64_t blocks = (values + kExchangeThreads - 1) / kExchangeThreads;
  Launch(device, operation, kernel,
         {.blocks = dim3(static_cast<unsigned>(blocks)), .threads = dim3(kExchangeThreads)}, x);
}

template <typename T>
void Export(Device& device, const ExchangedSlot<T>& x, std::span<const std::span<float>> arrays) {
  constexpr const char* kName = "export_slot";
  Run(device, kName, ExportKernel<T>, x);
  CopyToHost(device, x.shift_inputs, arrays[0].data(), arrays[0].size_bytes(), kName);
  CopyToHost(device, x.exchanged_modes, arrays[1].data(), arrays[1].size_bytes(), kName);
  device.Finish(kName);
}

template <typename T>
void Import(Device& device, ExchangedSlot<T> x, std::span<const std::span<const float>> arrays) {
  x.pending_tokens = static_cast<int32_t>(std::ssize(arrays[2]) / x.exchanged_rows());
  CopyToDevice(device, arrays[2].data(), x.pending, arrays[2].size_bytes());
  CopyToDevice(device, arrays[0].data(), x.shift_inputs, arrays[0].size_bytes());
  CopyToDevice(device, arrays[1].data(), x.exchanged_modes, arrays[1].size_bytes());
  Run(device, "import_slot", ImportKernel<T>, x);
}

// Whether these are arrays of the sizes that arrays() allows.
template <typename Array>
bool Fit(const H3Slots& state, std::span<const Array> arrays) {
  const H3View& h3 = state.constants().view();
  const auto d = static_cast<size_t>(h3.d_model);
  return arrays.size() == 3 && arrays[0].size() == d * static_cast<size_t>(h3.taps) &&
         arrays[1].size() == d * static_cast<size_t>(h3.head_dim * h3.modes * 2) &&
         arrays[2].size() <= static_cast<size_t>(kCaptureTokens - 1) * d * h3.head_dim;
}

}  // namespace

void ExportSlot(Device& device, const H3Slots& state, int64_t slot, int64_t position,
                std::span<const std::span<float>> arrays) {
  assert(Fit(state, arrays));
  if (state.constants().activations() == DType::kBF16) {
    Export(device, Exchange<BF16>(device, state, slot, position), arrays);
  } else {
    Export(device, Exchange<float>(device, state, slot, position), arrays);
  }
}

void ImportSlot(Device& device, H3Slots& state, int64_t slot, int64_t position,
                std::span<const std::span<const float>> arrays) {
  assert(Fit(state, arrays));
  if (state.constants().activations() == DType::kBF16) {
    Import(device, Exchange<BF16>(device, state, slot, position), arrays);
  } else {
    Import(device, Exchange<float>(device, state, slot, position), arrays);
  }
}

}  // namespace hippodrome::cuda
