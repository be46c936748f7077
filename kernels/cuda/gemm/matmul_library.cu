// MakeMatmulLibrary() on cuBLASLt. Its matrices are column-major: a row-major one is seen
// transposed there. So y = x W^T is asked for as D = A^T B + C with A = W^T, B = x^T, D = y^T, and
// C is the residual.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <map>
#include <optional>
#include <vector>

#include "kernels/cuda/gemm/linear.h"

namespace hippodrome::cuda {
namespace {

constexpr size_t kMatmulWorkspaceBytes = 32 << 20;
// Proposals that are asked for.
constexpr int kCandidates = 5;
// Plans that are kept; only absurd traffic has more.
constexpr size_t kMaxPlans = 8192;

bool Succeeded(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

using Activation = Epilogue::Activation;

// No kernel asks for more than this of an address.
constexpr uint32_t kAlignment = 16;

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

uint32_t AlignmentOf(const void* address) {
  return 1u << std::countr_zero(reinterpret_cast<uintptr_t>(address) | kAlignment);
}

// Whether the library takes the types of the product itself, without its epilogue.
bool IsLibraryProduct(const LinearCall& call) {
  if (call.w.dtype() == DType::kBF16) return call.x.dtype == DType::kBF16;
  return call.x.dtype == DType::kF32 && call.y.dtype == DType::kF32;
}

// Whether it computes what follows as Backend::Linear does: it adds C before the activation, has no
// gate, its GELU is that with tanh, and it reads a bias in vectors.
bool IsLibraryEpilogue(const Epilogue& epilogue) {
  const bool activation =
      epilogue.activation == Activation::kNone ||
      (epilogue.activation == Activation::kGeluTanh && epilogue.residual.data == nullptr);
  return activation && epilogue.gate.data == nullptr &&
         AlignmentOf(epilogue.bias.data) == kAlignment;
}

// Everything that the choice of an algorithm may depend on.
struct Product {
  int64_t rows, in, out;
  int64_t x_stride, c_stride, y_stride;
  DType x, w, y;
  Epilogue::Activation activation;
  bool has_bias, has_residual;
  uint32_t x_alignment, w_alignment, c_alignment, y_alignment;  // in bytes, of the addresses

  auto operator<=>(const Product&) const = default;
};

Product DescribeProduct(const LinearCall& call) {
  const Epilogue& epilogue = call.epilogue;
  const bool has_residual = epilogue.residual.data != nullptr;
  const Tensor& c = has_residual ? epilogue.residual : call.y;
  return {.rows = call.x.rows,
          .in = call.w.in(),
          .out = call.w.out(),
          .x_stride = call.x.stride,
          .c_stride = c.stride,
          .y_stride = call.y.stride,
          .x = call.x.dtype,
          .w = call.w.dtype(),
          .y = call.y.dtype,
          .activation = epilogue.activation,
          .has_bias = epilogue.bias.data != nullptr,
          .has_residual = has_residual,
          .x_alignment = AlignmentOf(call.x.data),
          .w_alignment = AlignmentOf(call.w.data()),
          .c_alignment = AlignmentOf(c.data),
          .y_alignment = AlignmentOf(call.y.data)};
}

cublasLtEpilogue_t EpilogueOf(const Product& p) {
  if (p.activation == Activation::kGeluTanh) {
    return p.has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return p.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// A product with its descriptors, and the algorithm that was chosen. Stays where it is made.
struct MatmulPlan {
  bool usable = false;
  cublasLtMatmulDescOpaque_t operation = {};
  cublasLtMatrixLayoutOpaque_t a = {}, b = {}, c = {}, d = {};
  cublasLtMatmulAlgo_t algorithm = {};
};

template <typename Value>
bool Set(MatmulPlan& plan, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  return Succeeded(
      cublasLtMatmulDescSetAttribute(&plan.operation, attribute, &value, sizeof(value)));
}

template <typename Value>
bool Set(cublasLtMatmulPreferenceOpaque_t& preference,
         cublasLtMatmulPreferenceAttributes_t attribute, const Value& value) {
  return Succeeded(
      cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)));
}

bool SetBias(const void* bias, MatmulPlan& plan) {
  return Set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

// False where the library refuses.
bool SetDescriptors(const Product& p, const void* bias, MatmulPlan& plan) {
  const cudaDataType_t y = TypeOf(p.y);
  const auto in = static_cast<uint64_t>(p.in);
  const auto out = static_cast<uint64_t>(p.out);
  const auto rows = static_cast<uint64_t>(p.rows);
  const bool set =
      Succeeded(cublasLtMatmulDescInit(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F)) &&
      Succeeded(cublasLtMatrixLayoutInit(&plan.a, TypeOf(p.w), in, out, p.in)) &&
      Succeeded(cublasLtMatrixLayoutInit(&plan.b, TypeOf(p.x), in, rows, p.x_stride)) &&
      Succeeded(cublasLtMatrixLayoutInit(&plan.c, y, out, rows, p.c_stride)) &&
      Succeeded(cublasLtMatrixLayoutInit(&plan.d, y, out, rows, p.y_stride)) &&
      Set(plan, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(CUBLAS_OP_T)) &&
      Set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(EpilogueOf(p)));
  if (!set || !p.has_bias) return set;
  return Set(plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(y)) &&
         SetBias(bias, plan);
}

bool SetPreference(const Product& p, cublasLtMatmulPreferenceOpaque_t& preference) {
  // Partial sums stay f32.
  const auto reduction = static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  return Succeeded(cublasLtMatmulPreferenceInit(&preference)) &&
         Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
             uint64_t{kMatmulWorkspaceBytes}) &&
         Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reduction) &&
         Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.w_alignment) &&
         Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.x_alignment) &&
         Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.c_alignment) &&
         Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.y_alignment);
}

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
    MatmulPlan& plan = FindPlan(call, product);
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

  MatmulPlan& FindPlan(const LinearCall& call, const Product& product) {
    const auto known = plans_.find(product);
    if (known != plans_.end()) return known->second;
    if (plans_.size() >= kMaxPlans) plans_.clear();
    MatmulPlan& plan = plans_[product];
    plan.usable =
        SetDescriptors(product, call.epilogue.bias.data, plan) && ChooseAlgorithm(product, plan);
    return plan;
  }

  // The library's first proposal that can be used.
  bool ChooseAlgorithm(const Product& product, MatmulPlan& plan) {
    cublasLtMatmulPreferenceOpaque_t preference = {};
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results = {};
    int found = 0;
    if (!SetPreference(product, preference) ||
        !Succeeded(cublasLtMatmulAlgoGetHeuristic(handle_, &plan.operation, &plan.a, &plan.b,
                                                  &plan.c, &plan.d, &preference, kCandidates,
                                                  results.data(), &found))) {
      return false;
    }
    std::vector<MatmulCandidate> candidates;
    for (int i = 0; i < found; ++i) {
      const auto& result = results[static_cast<size_t>(i)];
      candidates.push_back({Succeeded(result.state), result.workspaceSize});
    }
    const std::optional<size_t> chosen = ChooseCandidate(candidates, kMatmulWorkspaceBytes);
    if (chosen) plan.algorithm = results[*chosen].algo;
    return chosen.has_value();
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
};

}  // namespace

std::unique_ptr<MatmulLibrary> MakeMatmulLibrary(Device& device) {
  void* workspace = device.Scratch(ScratchUse::kMatmul, kMatmulWorkspaceBytes);
  cublasLtHandle_t handle = nullptr;
  if (!Succeeded(cublasLtCreate(&handle))) return nullptr;
  return std::make_unique<CublasLt>(handle, workspace);
}

}  // namespace hippodrome::cuda
