// What tells one model from another.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_FINGERPRINT_WEIGHTS_H_
#define HIPPODROME_ENGINE_CHECKPOINT_FINGERPRINT_WEIGHTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/xxh3.h"
#include "engine/checkpoint/weights_source.h"

namespace hippodrome {

// Passes on the tensors of another source, which must outlive it, and takes a fingerprint of those
// that are asked for: they are about to be read anyway, so that this costs no reading of its own.
class FingerprintWeights final : public WeightsSource {
 public:
  // `config`: the text of the configuration that says what the tensors mean.
  FingerprintWeights(WeightsSource& source, std::string_view config);

  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override;
  DType TypeOf(const std::string& name) const override { return source_.TypeOf(name); }
  void Drop(const TensorView& tensor) override { source_.Drop(tensor); }
  bool keeps() const override { return source_.keeps(); }

  // Of the configuration and of names, dtypes, shapes and bytes of all tensors so far.
  std::string fingerprint() const { return checksum_.Hex(); }

 private:
  WeightsSource& source_;
  Xxh3 checksum_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_FINGERPRINT_WEIGHTS_H_
