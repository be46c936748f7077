// Tensors of the Open Inference Protocol: their sizes, and their raw form.
#ifndef HIPPODROME_SERVER_HANDLERS_TENSOR_CONTENTS_H_
#define HIPPODROME_SERVER_HANDLERS_TENSOR_CONTENTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_field.h"
#include "inference/open_inference.pb.h"

namespace hippodrome {

using TensorShape = google::protobuf::RepeatedField<int64_t>;

// The product of the shape. kInvalidArgument for a negative size, or a product over `most`.
absl::StatusOr<int64_t> CountElements(const TensorShape& shape, int64_t most);

// Input `index`, which must be of BYTES, as texts: as many as its shape says, and at most `most`.
// Errors: kInvalidArgument naming the input and what does not fit.
absl::StatusOr<std::vector<std::string>> ReadTexts(const inference::ModelInferRequest& request,
                                                   int index, int64_t most);

// The raw form of texts, and back: each behind its length, four bytes, little-endian. Errors:
// kInvalidArgument unless the bytes hold exactly `count` texts.
absl::StatusOr<std::vector<std::string>> SplitTexts(std::string_view raw, int64_t count);

// The raw form of an output that has contents. REQUIRES: FP32, INT32, INT64 or BYTES.
std::string RawContents(const inference::ModelInferResponse::InferOutputTensor& output);

// Moves the contents of all outputs to raw_output_contents.
void MakeRaw(inference::ModelInferResponse& response);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HANDLERS_TENSOR_CONTENTS_H_
