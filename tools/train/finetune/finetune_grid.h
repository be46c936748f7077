// The points of a grid search over the settings of fine-tuning.
#ifndef HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_GRID_H_
#define HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_GRID_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace hippodrome {

// What runs of different seeds have in common.
struct FinetunePoint {
  double rate = 0;  // the highest
  double weight_decay = 0;
  int64_t batch = 0;
  int64_t epochs = 0;

  auto operator<=>(const FinetunePoint&) const = default;
};

// The values of each dimension.
struct FinetuneGrid {
  std::vector<double> rates;
  std::vector<double> weight_decays;
  std::vector<int64_t> batches;
  std::vector<int64_t> epochs;
  std::vector<int64_t> seeds;
};

// For small encoders on a processor: two rates, two seeds.
FinetuneGrid SmallGrid();
// Those of the BiGS paper, with one seed.
FinetuneGrid PublishedGlueGrid();
FinetuneGrid PublishedSquadGrid();

// All combinations, rates outermost.
std::vector<FinetunePoint> PointsOf(const FinetuneGrid& grid);

// "rate-0.0002-decay-0.01-batch-16-epochs-3-seed-1", a name for a folder.
std::string RunName(const FinetunePoint& point, int64_t seed);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_FINETUNE_FINETUNE_GRID_H_
