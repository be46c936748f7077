#include "tools/train/finetune/finetune_grid.h"

#include <fmt/format.h>

namespace hippodrome {

FinetuneGrid SmallGrid() {
  return {.rates = {2e-4, 5e-4},
          .weight_decays = {0.01},
          .batches = {16},
          .epochs = {5},
          .seeds = {1, 2}};
}

FinetuneGrid PublishedGlueGrid() {
  return {.rates = {1e-5, 2e-5, 3e-5, 4e-5, 5e-5, 6e-5},
          .weight_decays = {0.01, 0.1},
          .batches = {16, 32},
          .epochs = {3, 5, 8},
          .seeds = {1}};
}

FinetuneGrid PublishedSquadGrid() {
  return {.rates = {4e-5, 6e-5},
          .weight_decays = {0, 0.01},
          .batches = {32},
          .epochs = {2},
          .seeds = {1}};
}

std::vector<FinetunePoint> PointsOf(const FinetuneGrid& grid) {
  std::vector<FinetunePoint> points;
  for (const double rate : grid.rates) {
    for (const double weight_decay : grid.weight_decays) {
      for (const int64_t batch : grid.batches) {
        for (const int64_t epochs : grid.epochs) {
          points.push_back({rate, weight_decay, batch, epochs});
        }
      }
    }
  }
  return points;
}

std::string RunName(const FinetunePoint& point, int64_t seed) {
  return fmt::format("rate-{}-decay-{}-batch-{}-epochs-{}-seed-{}", point.rate, point.weight_decay,
                     point.batch, point.epochs, seed);
}

}  // namespace hippodrome
