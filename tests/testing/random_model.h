// Small random models whose logits are of the size of a trained model's.
#ifndef HIPPODROME_TESTS_TESTING_RANDOM_MODEL_H_
#define HIPPODROME_TESTS_TESTING_RANDOM_MODEL_H_

#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/weights_source.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "engine/models/bigs/bigs.h"
#include "engine/models/h3/hybrid_h3.h"

namespace hippodrome {

// Normal values scaled by fan-in, SSM parameters spread round the published initialisation; the
// same for the same name. Every backend that loads from it holds the same model.
class TestWeights final : public WeightsSource {
 public:
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override;
  void Drop(const TensorView& tensor) override { values_.erase(tensor.name); }

 private:
  std::map<std::string, std::vector<float>> values_;
};

// d_model 32, 3 layers, attention in the middle, d_state 8, 40 ids padded to 48.
H3Config TinyConfig();

// Never fails for a valid configuration.
std::unique_ptr<HybridH3> MakeTestModel(Backend& backend, const H3Config& config,
                                        DType weights = DType::kF32);

// d 32, 2 layers, N 8, 40 ids, 300 positions, three labels, pads to 64.
BigsConfig TinyBigsConfig();

// Never fails for a valid configuration.
std::unique_ptr<Bigs> MakeTestBigs(Backend& backend, const BigsConfig& config,
                                   DType weights = DType::kF32);

// Reproducible ids in [0, vocab).
std::vector<int32_t> RandomIds(int64_t count, int64_t vocab, uint32_t seed);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_RANDOM_MODEL_H_
