#include "tools/plots/encoder_kernels.h"

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/weights_source.h"
#include "engine/config/bigs_config.h"
#include "engine/models/diagonal_ssm.h"
#include "kernels/ssm/diagonal_ssm.h"

namespace hippodrome {

absl::StatusOr<EncoderKernels> ReadEncoderKernels(const std::string& directory, int64_t length) {
  HIPPODROME_ASSIGN_OR_RETURN(const BigsConfig config, ReadBigsConfig(directory));
  if (config.routing != EncoderRouting::kSsm) {
    return FailedPrecondition(directory + ": the model has attention, which has no kernels");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto file,
                              SafetensorsFile::Open(directory + "/model.safetensors"));
  FileWeights source(*file);
  EncoderKernels kernels{
      .layers = config.num_hidden_layers, .heads = config.num_ssm_heads, .length = length};
  for (int64_t layer = 0; layer < kernels.layers; ++layer) {
    for (const char* direction : {"fs4.", "bs4."}) {
      const std::string prefix = "bigs.encoder.layer." + std::to_string(layer) + "." + direction;
      HIPPODROME_ASSIGN_OR_RETURN(const DiagonalSsm ssm, ReadDiagonalSsm(source, config, prefix));
      const std::vector<double> kernel = DiagonalKernel(ssm.View(config), length);
      kernels.values.insert(kernels.values.end(), kernel.begin(), kernel.end());
    }
  }
  return kernels;
}

}  // namespace hippodrome
