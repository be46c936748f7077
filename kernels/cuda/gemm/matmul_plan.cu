#include "kernels/cuda/gemm/matmul_plan.h"

#include <bit>

namespace hippodrome::cuda {
namespace {

using Activation = Epilogue::Activation;

// No kernel asks for more than this of an address.
constexpr uint32_t kAlignment = 16;

cudaDataType_t TypeOf(DType dtype) { return dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F; }

uint32_t AlignmentOf(const void* address) {
  return 1u << std::countr_zero(reinterpret_cast<uintptr_t>(address) | kAlignment);
}

cublasLtEpilogue_t EpilogueOf(const Product& p) {
  if (p.activation == Activation::kGeluTanh) {
    return p.has_bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return p.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

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

}  // namespace

bool IsLibraryProduct(const LinearCall& call) {
  if (call.w.dtype() == DType::kBF16) return call.x.dtype == DType::kBF16;
  return call.x.dtype == DType::kF32 && call.y.dtype == DType::kF32;
}

bool IsLibraryEpilogue(const Epilogue& epilogue) {
  const bool activation =
      epilogue.activation == Activation::kNone ||
      (epilogue.activation == Activation::kGeluTanh && epilogue.residual.data == nullptr);
  return activation && epilogue.gate.data == nullptr &&
         AlignmentOf(epilogue.bias.data) == kAlignment;
}

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

bool SetBias(const void* bias, MatmulPlan& plan) {
  return Set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
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

}  // namespace hippodrome::cuda
