// MakeMatmulLibrary() on cuBLASLt.
#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <span>

#include "kernels/cuda/gemm/matmul_plan.h"

namespace hippodrome::cuda {
namespace {

// Algorithms that are timed, and how often each runs for it.
constexpr int kCandidates = 5;
constexpr int kTimedRuns = 3;
// Plans that are kept; only absurd traffic has more.
constexpr size_t kMaxPlans = 8192;

// Products of about as many rows have the same best algorithm: an eighth of an octave.
Product WithSimilarRows(Product product) {
  const auto octave = std::bit_floor(static_cast<uint64_t>(product.rows));
  const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(octave) / 8);
  product.rows = (product.rows + step - 1) / step * step;
  return product;
}

bool IsRecording(const Device& device) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(device.stream(), &status) != cudaSuccess ||
         status != cudaStreamCaptureStatusNone;
}

class Event {
 public:
  Event() { cudaEventCreate(&event_); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Sums that wait to be finished, at a time: less than the L2 cache of an A100 (40 MB) holds. Their
// rows are a multiple of those of every tile.
constexpr int64_t kSumsBytes = 24 << 20;
constexpr int64_t kSumsRows = 256;

// The epilogue of some rows.
Epilogue RowsOf(Epilogue epilogue, int64_t begin, int64_t count) {
  if (epilogue.gate.data != nullptr) epilogue.gate = epilogue.gate.Rows(begin, count);
  if (epilogue.residual.data != nullptr) epilogue.residual = epilogue.residual.Rows(begin, count);
  return epilogue;
}

// Where one run reads and writes.
struct Operands {
  const void* w;
  const void* x;
  const void* c;
  void* d;
};

Operands OperandsOf(const LinearCall& call) {
  const Tensor& residual = call.epilogue.residual;
  return {call.w.data(), call.x.data, residual.data != nullptr ? residual.data : call.y.data,
          call.y.data};
}

class CublasLt final : public MatmulLibrary {
 public:
  CublasLt(cublasLtHandle_t handle, void* workspace) : handle_(handle), workspace_(workspace) {}
  ~CublasLt() override { cublasLtDestroy(handle_); }

  bool Linear(Device& device, const LinearCall& call) override {
    if (!IsLibraryProduct(call)) return false;
    if (IsLibraryEpilogue(call.epilogue) && Multiply(device, call)) return true;
    MultiplyThenFinish(device, call);
    return true;
  }

 private:
  // False, and nothing is done, where the library refuses.
  bool Multiply(Device& device, const LinearCall& call) {
    const Product product = DescribeProduct(call);
    MatmulPlan& plan = FindPlan(device, call, product);
    plan.usable = plan.usable && (!product.has_bias || SetBias(call.epilogue.bias.data, plan)) &&
                  Run(device, product, plan, OperandsOf(call));
    return plan.usable;
  }

  // The sums stay f32 on their way, so that y is rounded once; so few rows at a time that they stay
  // in the cache.
  void MultiplyThenFinish(Device& device, const LinearCall& call) {
    const int64_t most =
        std::max(kSumsBytes / (call.y.cols * int64_t{sizeof(float)} * kSumsRows), int64_t{1}) *
        kSumsRows;
    void* scratch = device.Scratch(ScratchUse::kMatmulSums,
                                   static_cast<size_t>(most * call.y.cols) * sizeof(float));
    for (int64_t begin = 0; begin < call.x.rows; begin += most) {
      const int64_t rows = std::min(most, call.x.rows - begin);
      const Epilogue epilogue = RowsOf(call.epilogue, begin, rows);
      const LinearCall part = {call.x.Rows(begin, rows), call.w, epilogue,
                               call.y.Rows(begin, rows)};
      const Tensor sums = {scratch, DType::kF32, rows, call.y.cols, call.y.cols};
      const Epilogue none;
      if (Multiply(device, {part.x, call.w, none, sums})) {
        FinishLinear(device, sums, epilogue, part.y);
      } else {
        LinearStep(device, part);
      }
    }
  }

  MatmulPlan& FindPlan(Device& device, const LinearCall& call, const Product& product) {
    const auto known = plans_.find(product);
    if (known != plans_.end()) return known->second;
    if (plans_.size() >= kMaxPlans) plans_.clear();
    MatmulPlan& plan = plans_[product];
    plan.usable = SetDescriptors(product, call.epilogue.bias.data, plan) &&
                  (ReuseAlgorithm(product, plan) || ChooseAlgorithm(device, call, product, plan));
    return plan;
  }

  bool ReuseAlgorithm(const Product& product, MatmulPlan& plan) {
    const auto timed = timed_.find(WithSimilarRows(product));
    if (timed == timed_.end()) return false;
    cublasLtMatmulHeuristicResult_t result = {};
    plan.algorithm = timed->second;
    return Succeeded(cublasLtMatmulAlgoCheck(handle_, &plan.operation, &plan.a, &plan.b, &plan.c,
                                             &plan.d, &plan.algorithm, &result)) &&
           result.workspaceSize <= kMatmulWorkspaceBytes;
  }

  // The fastest algorithm; while a step is recorded, when nothing can be timed, the first.
  bool ChooseAlgorithm(Device& device, const LinearCall& call, const Product& product,
                       MatmulPlan& plan) {
    cublasLtMatmulPreferenceOpaque_t preference = {};
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results = {};
    int found = 0;
    if (!SetPreference(product, preference) ||
        !Succeeded(cublasLtMatmulAlgoGetHeuristic(handle_, &plan.operation, &plan.a, &plan.b,
                                                  &plan.c, &plan.d, &preference, kCandidates,
                                                  results.data(), &found))) {
      return false;
    }
    const auto end = std::remove_if(results.begin(), results.begin() + found,
                                    [](const auto& r) { return !Succeeded(r.state); });
    if (end == results.begin()) return false;
    plan.algorithm = results.front().algo;
    if (IsRecording(device)) return true;
    const auto* fastest =
        Fastest(device, product, plan, OperandsOf(call), std::span(results.begin(), end));
    if (fastest == nullptr) return false;
    plan.algorithm = fastest->algo;
    timed_[WithSimilarRows(product)] = plan.algorithm;
    return true;
  }

  // Null if none of them runs.
  const cublasLtMatmulHeuristicResult_t* Fastest(
      Device& device, const Product& product, MatmulPlan& plan, Operands operands,
      std::span<const cublasLtMatmulHeuristicResult_t> results) {
    std::shared_ptr<void> trial;
    if (product.has_residual && operands.c == operands.d) {  // which runs once only
      const int64_t elements = product.rows * product.y_stride;
      trial = TrialOutput(device, static_cast<size_t>(elements) * SizeOf(product.y));
      if (trial == nullptr) return &results.front();
      operands.c = operands.d = trial.get();
    }
    const cublasLtMatmulHeuristicResult_t* fastest = nullptr;
    float least = std::numeric_limits<float>::infinity();
    for (const auto& result : results) {
      plan.algorithm = result.algo;
      const float time = Time(device, product, plan, operands);
      if (time >= least) continue;
      least = time;
      fastest = &result;
    }
    return fastest;
  }

  // Null where there is no memory left for it.
  static std::shared_ptr<void> TrialOutput(Device& device, size_t bytes) {
    try {
      return AllocateZeroed(device, bytes);
    } catch (const DeviceError&) {
      return nullptr;
    }
  }

  // Infinite for an algorithm that does not run.
  float Time(Device& device, const Product& product, MatmulPlan& plan, const Operands& operands) {
    constexpr float kNever = std::numeric_limits<float>::infinity();
    const Event begin;
    const Event end;
    if (!Run(device, product, plan, operands)) return kNever;  // it is loaded now
    cudaEventRecord(begin.get(), device.stream());
    for (int i = 0; i < kTimedRuns; ++i) Run(device, product, plan, operands);
    cudaEventRecord(end.get(), device.stream());
    float time = kNever;
    if (cudaEventSynchronize(end.get()) != cudaSuccess ||
        cudaEventElapsedTime(&time, begin.get(), end.get()) != cudaSuccess) {
      return kNever;
    }
    return time;
  }

  bool Run(Device& device, const Product& product, MatmulPlan& plan, const Operands& operands) {
    const float alpha = 1;
    const float beta = product.has_residual ? 1 : 0;
    return Succeeded(cublasLtMatmul(handle_, &plan.operation, &alpha, operands.w, &plan.a,
                                    operands.x, &plan.b, &beta, operands.c, &plan.c, operands.d,
                                    &plan.d, &plan.algorithm, workspace_, kMatmulWorkspaceBytes,
                                    device.stream()));
  }

  cublasLtHandle_t handle_;
  void* workspace_;
  std::map<Product, MatmulPlan> plans_;
  std::map<Product, cublasLtMatmulAlgo_t> timed_;
};

}  // namespace

std::unique_ptr<MatmulLibrary> MakeMatmulLibrary(Device& device) {
  void* workspace = device.Scratch(ScratchUse::kMatmul, kMatmulWorkspaceBytes);
  cublasLtHandle_t handle = nullptr;
  if (!Succeeded(cublasLtCreate(&handle))) return nullptr;
  return std::make_unique<CublasLt>(handle, workspace);
}

}  // namespace hippodrome::cuda
