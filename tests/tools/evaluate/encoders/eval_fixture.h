// The commands as they are called, on tiny encoders that are made to give a known answer.
#ifndef HIPPODROME_TESTS_TOOLS_EVALUATE_ENCODERS_EVAL_FIXTURE_H_
#define HIPPODROME_TESTS_TOOLS_EVALUATE_ENCODERS_EVAL_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"
#include "tools/evaluate/eval_tasks.h"

namespace hippodrome {

using Tensors = std::map<std::string, std::vector<float>>;

// Keeps what a model reads, so that it can be written.
class RecordedWeights final : public WeightsSource {
 public:
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    auto tensor = weights_.Get(name, shape);
    if (tensor.ok()) {
      shapes[name] = shape;
      values[name] = *ToFloats(*tensor);
    }
    return tensor;
  }
  void Drop(const TensorView& tensor) override { weights_.Drop(tensor); }

  std::map<std::string, std::vector<int64_t>> shapes;
  Tensors values;

 private:
  TestWeights weights_;
};

inline void WriteWeights(const std::string& path, const RecordedWeights& weights) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, shape] : weights.shapes) specs.push_back({name, DType::kF32, shape});
  const auto writer = *SafetensorsWriter::Create(path, specs);
  for (const auto& [name, values] : weights.values) {
    ASSERT_TRUE(writer->Append(std::as_bytes(std::span(values))).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
}

class EvalFixture : public testing::Test {
 protected:
  // Writes a model that knows these words, its weights changed by `change`, into a folder here.
  void WriteModel(EncoderHead head, const std::vector<std::string>& labels,
                  const std::function<void(Tensors&)>& change, const std::string& folder = ".") {
    std::filesystem::create_directories(directory_.File(folder));
    BigsConfig config = TinyBigsConfig();
    config.head = head;
    config.labels = labels;
    directory_.Write(folder + "/config.json", ToJson(config));
    directory_.Write(folder + "/vocab.txt",
                     "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nbook\nis\nare\nred\nwhere\n.\n");
    const auto backend = MakeCpuBackend({.threads = 1});
    RecordedWeights weights;
    ASSERT_TRUE(Bigs::Load(*backend, config, weights, DType::kF32).ok());
    change(weights.values);
    WriteWeights(directory_.File(folder + "/model.safetensors"), weights);
  }

  // A classifier that always gives label number `label`.
  void WriteClassifier(const std::vector<std::string>& labels, size_t label,
                       const std::string& folder = ".") {
    WriteModel(
        EncoderHead::kSequenceClassification, labels,
        [&](Tensors& tensors) {
          for (float& weight : tensors.at("classifier.weight")) weight = 0;
          for (float& bias : tensors.at("classifier.bias")) bias = 0;
          tensors.at("classifier.bias").at(label) = 1;
        },
        folder);
  }

  // Runs the task with these arguments, its name first, and gives its exit code; by the model here
  // where they name none.
  int Run(int (*command)(int, char**), std::vector<std::string> arguments) {
    if (std::find(arguments.begin(), arguments.end(), "--model") == arguments.end()) {
      arguments.insert(arguments.end(), {"--model", directory_.path()});
    }
    arguments.insert(arguments.end(),
                     {"--device", "cpu", "--threads", "1", "--json", directory_.File("out.json")});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = command(static_cast<int>(argv.size()), argv.data());
    testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  nlohmann::json Result() const {
    return nlohmann::json::parse(FileContent(directory_.File("out.json")));
  }

  const TemporaryDirectory directory_;
  std::string error_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_EVALUATE_ENCODERS_EVAL_FIXTURE_H_
