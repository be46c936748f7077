// Moves tensors of a checkpoint into a backend.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_READER_H_
#define HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_source.h"
#include "kernels/backend.h"

namespace hippodrome {

// A tensor by name, and how many rows or elements it has.
struct NamedPart {
  std::string name;
  int64_t size = 0;
};

// Reads each tensor once and lets its pages go, so that loading a model takes little more memory
// than the model. Every error names the tensor; also one whose values are
// not all finite is refused. Source and backend must outlive the reader.
class WeightsReader {
 public:
  // `linear_dtype`: of kWeightTypes, the dtype of packed matrices.
  WeightsReader(WeightsSource& source, SequenceBackend& backend, DType linear_dtype)
      : source_(source), backend_(backend), linear_dtype_(linear_dtype) {}

  SequenceBackend& backend() const { return backend_; }
  DType linear_dtype() const { return linear_dtype_; }
  WeightsSource& source() const { return source_; }

  // The matrices `names`, [out, in] each, stacked by rows.
  absl::StatusOr<std::unique_ptr<LinearWeights>> Linear(const std::vector<std::string>& names,
                                                        int64_t out, int64_t in) const;
  // The same of matrices [size, in].
  absl::StatusOr<std::unique_ptr<LinearWeights>> Linear(const std::vector<NamedPart>& parts,
                                                        int64_t in) const;
  // The matrix `name`, [out, in], of the embedding or the head, as EmbeddingType(linear_dtype()).
  absl::StatusOr<std::unique_ptr<LinearWeights>> EmbeddingOrHead(const std::string& name,
                                                                 int64_t out, int64_t in) const;
  // The vectors `names`, [size] each, side by side as one row of the residual stream's type, or of
  // activations.
  absl::StatusOr<OwnedTensor> Row(const std::vector<std::string>& names, int64_t size) const;
  absl::StatusOr<OwnedTensor> ActivationRow(const std::vector<std::string>& names,
                                            int64_t size) const;
  // The same of vectors [size].
  absl::StatusOr<OwnedTensor> ActivationRow(const std::vector<NamedPart>& parts) const;
  // A matrix of the residual stream's type, [rows, cols].
  absl::StatusOr<OwnedTensor> Matrix(const std::string& name, int64_t rows, int64_t cols) const;

 private:
  // Matrices [size, in] stacked by rows.
  absl::StatusOr<std::unique_ptr<LinearWeights>> Pack(const std::vector<NamedPart>& parts,
                                                      int64_t in, DType dtype) const;
  // Uploads the vectors of `parts` side by side to `row`.
  absl::StatusOr<OwnedTensor> Fill(OwnedTensor row, const std::vector<NamedPart>& parts) const;

  WeightsSource& source_;
  SequenceBackend& backend_;
  DType linear_dtype_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_WEIGHTS_READER_H_
