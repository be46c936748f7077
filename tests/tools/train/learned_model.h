// A model from a directory, ready to learn, for tests.
#ifndef HIPPODROME_TESTS_TOOLS_TRAIN_LEARNED_MODEL_H_
#define HIPPODROME_TESTS_TOOLS_TRAIN_LEARNED_MODEL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/parameter_weights.h"
#include "engine/checkpoint/safetensors.h"
#include "kernels/tape/tape.h"
#include "tools/train/step/decoder_trainee.h"
#include "tools/train/step/encoder_trainee.h"

namespace hippodrome {

struct LearnedModel {
  std::unique_ptr<Parameters> parameters;
  std::unique_ptr<Tape> tape;
  std::unique_ptr<Trainee> trainee;

  std::vector<float> Gradient(TrainingBackend& backend, const std::string& name) const {
    const Tensor gradient = parameters->Find(name)->gradient;
    std::vector<float> values(static_cast<size_t>(gradient.rows * gradient.cols));
    backend.Download(gradient, values);
    return values;
  }
};

inline std::unique_ptr<SafetensorsFile> OpenFile(const std::string& path) {
  auto file = SafetensorsFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return std::move(file).value();
}

template <typename Model, typename Config>
LearnedModel LoadToLearn(TrainingBackend& backend, const std::string& directory,
                         const Config& config, const TraineeSize& size, int32_t padding_id = -1,
                         DType weights = DType::kF32) {
  LearnedModel model;
  model.parameters = std::make_unique<Parameters>(backend);
  EXPECT_TRUE(AddParameters(*OpenFile(directory + "/model.safetensors"), *model.parameters).ok());
  model.tape = std::make_unique<Tape>(
      backend, *model.parameters, TapeOptions{.longest = size.length, .padding_id = padding_id});
  auto trainee = Model::Create(*model.tape, *model.parameters, config, weights, size);
  EXPECT_TRUE(trainee.ok()) << trainee.status();
  model.trainee = *std::move(trainee);
  return model;
}

// Integers of a tensor, -100 as -1.
inline std::vector<int32_t> Integers(const SafetensorsFile& file, const std::string& name) {
  std::vector<int32_t> integers;
  const std::vector<int64_t> values = ToIntegers(*file.Find(name)).value();
  for (const int64_t value : values) {
    integers.push_back(value == -100 ? -1 : static_cast<int32_t>(value));
  }
  return integers;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_TRAIN_LEARNED_MODEL_H_
