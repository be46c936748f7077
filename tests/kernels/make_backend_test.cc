#include "kernels/make_backend.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::make_backend_test {
namespace {

// Operations have tests of their own: here they only have to be reached through the interface.
TEST(MakeBackendTest, TheCpuBackendEmbedsNormalisesMultipliesAndSamples) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend({.threads = 2});
  EXPECT_EQ(backend->name(), "cpu");

  const std::vector<float> identity = {1, 0, 0, 1};
  const HostMatrix host = {identity.data(), DType::kF32, 2, 2};
  const auto table = backend->PackLinear(std::span(&host, 1), DType::kF32);
  EXPECT_EQ(table->out(), 2);
  EXPECT_EQ(table->in(), 2);

  OwnedTensor ids = backend->NewIndices(1, 1);
  backend->UploadIndices(std::vector<int32_t>{1}, ids);
  OwnedTensor x = backend->NewTensor(1, 2);
  backend->Embedding(*table, ids, {}, {}, x);

  OwnedTensor ones = backend->NewTensor(1, 2);
  backend->Upload(std::vector<float>{1, 1}, ones);
  backend->LayerNorm(x, ones, ones, 0, x);  // (0, 1) becomes (-1, 1), and then (0, 2)
  OwnedTensor y = backend->NewTensor(1, 2);
  backend->Linear(x, *table, {.bias = ones}, y);
  std::vector<float> values(2);
  backend->Download(y, values);
  EXPECT_EQ(values, (std::vector<float>{1, 3}));

  const SamplingRow greedy = {.parameters = {.temperature = 0}};
  OwnedTensor rows = backend->NewIndices(1, kSamplingColumns);
  backend->UploadIndices(AsIndices({&greedy, 1}), rows);
  backend->Sample(y, 2, rows, {}, ids);
  std::vector<int32_t> token(1);
  backend->DownloadIndices(ids, token);
  EXPECT_EQ(token[0], 1);
}

TEST(MakeBackendTest, TheCpuBackendAttends) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  const AttentionShape shape = {.heads = 1, .head_dim = 2, .rotary_dim = 0};
  const auto pages = backend->NewKeyValuePages(shape, 1, 4, DType::kF32);
  OwnedTensor table = backend->NewIndices(1, 1);
  OwnedTensor qkv = backend->NewTensor(2, 6);
  backend->Upload(std::vector<float>{0, 0, 0, 0, 2, 4, 0, 0, 0, 0, 4, 8}, qkv);
  OwnedTensor o = backend->NewTensor(2, 2);
  const std::vector<SequencePart> parts = WholeSequences(1, 2);
  backend->AttentionSequence(shape, qkv, {}, *pages, table, {parts, {}}, o);
  std::vector<float> values(4);
  backend->Download(o, values);
  EXPECT_EQ(values, (std::vector<float>{2, 4, 3, 6}));

  OwnedTensor positions = backend->NewIndices(1, 1);
  backend->UploadIndices(std::vector<int32_t>{1}, positions);
  backend->AttentionStep(shape, qkv.view.Rows(1, 1), {}, *pages, table, positions,
                         o.view.Rows(0, 1));
  backend->Download(o, values);
  EXPECT_EQ(values, (std::vector<float>{3, 6, 3, 6}));
}

TEST(MakeBackendTest, TheCpuBackendEncodes) {
  const std::unique_ptr<Backend> backend = MakeCpuBackend();
  // A mode that decays within a token: K[0] = C, and D = 1 doubles it.
  const float zero = 0, one[] = {1, 0}, a = -50;
  const float c[] = {50, 0};
  const DiagonalSsmParameters parameters = {.channels = 2,
                                            .heads = 1,
                                            .modes = 1,
                                            .a_real = {&a, 1},
                                            .a_imag = {&zero, 1},
                                            .c = c,
                                            .log_step = {&zero, 1},
                                            .d = {one, 1}};
  const auto weights = backend->PrepareLongConv(parameters, 3, DType::kF32);
  EXPECT_EQ(weights->longest(), 3);
  OwnedTensor u = backend->NewActivations(3, 2, DType::kF32);
  backend->Upload(std::vector<float>{1, 2, 3, 4, 5, 6}, u);
  OwnedTensor y = backend->NewActivations(3, 2, DType::kF32);
  backend->LongConv(*weights, u, 1, Direction::kBackward, y);
  std::vector<float> values(6);
  backend->Download(y, values);
  EXPECT_EQ(values, (std::vector<float>{2, 4, 6, 8, 10, 12}));

  OwnedTensor mask = backend->NewIndices(1, 3);
  backend->UploadIndices(std::vector<int32_t>{1, 0, 1}, mask);
  backend->MeanPool(u, mask, y.view.Rows(0, 1));
  OwnedTensor rows = backend->NewIndices(1, 2);
  backend->UploadIndices(std::vector<int32_t>{-1, 2}, rows);
  backend->GatherRows(u, rows, y.view.Rows(1, 2));
  backend->Download(y, values);
  EXPECT_EQ(values, (std::vector<float>{3, 4, 0, 0, 5, 6}));

  OwnedTensor qkv = backend->NewActivations(3, 3, DType::kF32);
  backend->Upload(std::vector<float>{0, 0, 4, 0, 0, 8, 0, 0, 6}, qkv);
  OwnedTensor o = backend->NewActivations(3, 1, DType::kF32);
  backend->BidirectionalAttention({.heads = 1, .head_dim = 1}, qkv, mask, o);
  values.resize(3);
  backend->Download(o, values);
  EXPECT_EQ(values, (std::vector<float>{5, 5, 5}));
}

TEST(MakeBackendTest, AThreadPoolHasAThreadForEachCore) {
  EXPECT_EQ(MakeThreadPool({.threads = 3})->threads(), 3);
  EXPECT_EQ(MakeThreadPool({.threads = 3, .cores = {0, 0}})->threads(), 2);
}

}  // namespace
}  // namespace hippodrome::make_backend_test
