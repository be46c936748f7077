// Models with untrained parameters, as training starts from them.
#ifndef HIPPODROME_TESTS_TESTING_INITIAL_MODEL_H_
#define HIPPODROME_TESTS_TESTING_INITIAL_MODEL_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/weights_source.h"
#include "engine/initialization/initial_weights.h"

namespace hippodrome {

// Gives each of `parameters`, which must outlive it, and remembers which were read.
class InitialSource final : public WeightsSource {
 public:
  explicit InitialSource(const std::vector<InitialParameter>& parameters);

  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override;
  void Drop(const TensorView& /*tensor*/) override {}

  std::vector<std::string> Unread() const;

 private:
  std::map<std::string, const InitialParameter*> parameters_;
  std::set<std::string> read_;
};

// Two blocks of `mixer` and between them one of attention; d_model 16, 24 ids padded to 32,
// sequences of up to 40 tokens.
H3Config TinyMixerConfig(DecoderMixer mixer);

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_INITIAL_MODEL_H_
