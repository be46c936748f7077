// The CPU backend chooses the tokens that the specification chooses.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::sample_test {
namespace {

std::vector<int32_t> Sample(Backend& backend, const std::vector<float>& logits, int64_t vocab,
                            const std::vector<SamplingParameters>& parameters) {
  const auto rows = static_cast<int64_t>(parameters.size());
  const OwnedTensor tensor = backend.NewTensor(rows, static_cast<int64_t>(logits.size()) / rows);
  const OwnedTensor tokens = backend.NewIndices(1, rows);
  const OwnedTensor sampling = backend.NewIndices(rows, kSamplingColumns);
  std::vector<SamplingRow> values(parameters.size());
  for (int64_t i = 0; i < rows; ++i) values[i] = {parameters[i], 3 * i};
  backend.UploadIndices(AsIndices(values), sampling);
  backend.Upload(logits, tensor);
  backend.Sample(tensor, vocab, sampling, {}, tokens);
  std::vector<int32_t> chosen(rows);
  backend.DownloadIndices(tokens, chosen);
  return chosen;
}

TEST(SampleTest, TheCpuDrawsTheTokensOfTheReference) {
  constexpr int64_t kVocab = 500;
  constexpr int64_t kColumns = 512;
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 2);
  std::vector<SamplingParameters> parameters;
  for (const float temperature : {0.0f, 0.3f, 1.0f, 5.0f}) {
    for (const int top_k : {0, 1, 7, 1000}) {
      for (const float top_p : {1.0f, 0.9f, 0.2f}) {
        for (const float min_p : {0.0f, 0.05f, 0.9f}) {
          for (const float typical_p : {1.0f, 0.8f, 0.2f}) {
            parameters.push_back({temperature, top_k, top_p, min_p, typical_p, random()});
          }
        }
      }
    }
  }
  std::vector<float> logits(parameters.size() * kColumns);
  for (float& logit : logits) logit = normal(random);
  const auto cpu = MakeCpuBackend({.threads = 2});
  const auto reference = MakeReferenceBackend();
  const auto actual = Sample(*cpu, logits, kVocab, parameters);
  const auto expected = Sample(*reference, logits, kVocab, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const SamplingParameters& p = parameters[i];
    EXPECT_EQ(actual[i], expected[i])
        << "temperature " << p.temperature << " top_k " << p.top_k << " top_p " << p.top_p
        << " min_p " << p.min_p << " typical_p " << p.typical_p;
  }
}

}  // namespace
}  // namespace hippodrome::sample_test
