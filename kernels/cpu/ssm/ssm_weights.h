// The constants of a decoder's SSM on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_SSM_SSM_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_SSM_SSM_WEIGHTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cpu/ssm/ssm_scan.h"
#include "kernels/ssm/head_loop.h"

namespace hippodrome::cpu {

// Channels in tiles of kTileChannels, side by side; the lanes that the last one lacks are zero.
struct SsmLayout {
  int64_t channels = 0;
  int64_t modes = 0;       // M
  int64_t kept_modes = 0;  // M, or the multiple of kModesTogether from there on

  int64_t tiles() const { return (channels + kTileChannels - 1) / kTileChannels; }
  int64_t First(int64_t tile) const { return tile * kTileChannels; }
  int64_t Width(int64_t tile) const { return std::min(kTileChannels, channels - First(tile)); }
};

class SsmConstants final : public SsmWeights {
 public:
  explicit SsmConstants(const LongConvParameters& parameters,
                        const HeadLoop& loop = OneAfterAnother);

  int64_t bytes() const override;
  const SsmLayout& layout() const { return layout_; }

  // ScanSsm() of a tile.
  void Scan(int64_t tile, const float* u, float* y, int64_t tokens, LaneComplex* state) const;

 private:
  void Pack(const DiagonalSsmParameters& parameters, const HeadLoop& loop);
  void Pack(const NplrParameters& parameters, const HeadLoop& loop);
  int64_t TileFloats() const;
  // [kept modes] of its kind, then the skips [lanes].
  float* Tile(int64_t tile) const;
  float* Skips(int64_t tile) const;
  template <typename Mode>
  ScanConstants<Mode> Constants(int64_t tile) const;

  SsmLayout layout_;
  bool low_rank_ = false;
  std::shared_ptr<void> values_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_SSM_SSM_WEIGHTS_H_
