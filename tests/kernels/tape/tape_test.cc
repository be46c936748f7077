// Gradients of small programs over the reference against central differences of their losses.
#include "kernels/tape/tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "tests/reference/reference_backend.h"

namespace hippodrome::tape_test {
namespace {

// What a tape cannot do is not there to be called, and what serving prepares is not taken for what
// training does.
static_assert(std::is_base_of_v<SequenceBackend, Tape> && !std::is_base_of_v<Backend, Tape>);
static_assert(!std::is_convertible_v<H3Weights*, H3ConvolutionWeights*> &&
              !std::is_convertible_v<H3ConvolutionWeights*, H3Weights*>);
static_assert(!std::is_convertible_v<H3Gradients*, LongConvGradients*>);

constexpr int64_t kRows = 3;
constexpr int64_t kCols = 4;

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = uniform(random);
  return values;
}

// What a program computes with: the weights of a tape over fresh parameters.
struct Machine {
  explicit Machine(const std::vector<float>& matrix, double dropout = 0)
      : backend(MakeReferenceBackend()),
        parameters(*backend),
        tape(*backend, parameters,
             {.longest = kRows, .dropout = {dropout, 0}, .attention_dropout = dropout}) {
    parameters.Add("w", {kCols, kCols}, matrix);
    parameters.Add("head", {5, kCols}, Random(5 * kCols, 2));
    parameters.Add("bias", {kCols}, Random(kCols, 3));
    const auto pack = [&](const char* name) {
      const Parameter& p = *parameters.Find(name);
      const HostMatrix part = {p.host.data(), DType::kF32, p.shape[0], p.shape[1]};
      return tape.PackLinear({&part, 1}, DType::kF32);
    };
    w = pack("w");
    head = pack("head");
    bias = tape.NewTensor(1, kCols);
    tape.Upload(parameters.Find("bias")->host, bias);
    x = tape.NewTensor(kRows, kCols);
    tape.Upload(Random(kRows * kCols, 4), x);
    y = tape.NewTensor(kRows, kCols);
    labels = tape.NewIndices(1, kRows);
    tape.UploadIndices(std::vector<int32_t>{0, -1, 4}, labels);
    losses = tape.NewTensor(1, kRows);
  }

  std::unique_ptr<TrainingBackend> backend;
  Parameters parameters;
  Tape tape;
  std::unique_ptr<LinearWeights> w, head;
  OwnedTensor bias, x, y, labels, losses;
};

using Program = std::function<void(Machine&)>;  // leaves its result in y

double Loss(Machine& m, const Program& program) {
  m.tape.Begin(7);
  program(m);
  m.tape.LinearCrossEntropy(m.y, *m.head, {}, m.labels, 1, m.losses);
  std::vector<float> values(kRows);
  m.tape.Download(m.losses, values);
  double sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

void ExpectGradient(const Program& program, double dropout = 0) {
  const std::vector<float> matrix = Random(kCols * kCols, 1);
  Machine machine(matrix, dropout);
  Loss(machine, program);
  machine.tape.Backward();
  std::vector<float> actual(matrix.size());
  machine.backend->Download(machine.parameters.Find("w")->gradient, actual);
  for (size_t i = 0; i < matrix.size(); ++i) {
    constexpr float kStep = 1.0f / 64;  // losses come back in f32, to 1e-7
    const auto at = [&](float step) {
      std::vector<float> moved = matrix;
      moved[i] += step;
      Machine other(moved, dropout);
      return Loss(other, program);
    };
    const double expected = (at(kStep) - at(-kStep)) / (2 * kStep);
    // The third derivative times the step's square, and the rounding of the losses.
    EXPECT_NEAR(actual[i], expected, 2e-3) << i;
  }
}

TEST(TapeTest, ResidualsAddInPlace) {
  ExpectGradient([](Machine& m) {
    m.tape.Linear(m.x, *m.w, {.bias = m.bias, .activation = Epilogue::Activation::kTanh}, m.y);
    m.tape.Linear(m.x, *m.w, {.residual = m.y}, m.y);
  });
}

TEST(TapeTest, MatricesAreUsedAgainForOtherValues) {
  ExpectGradient([](Machine& m) {
    const OwnedTensor t = m.tape.NewTensor(kRows, kCols);
    m.tape.Linear(m.x, *m.w, {.activation = Epilogue::Activation::kTanh}, t);
    m.tape.Linear(t, *m.w, {}, m.y);
    m.tape.Linear(m.y, *m.w, {.activation = Epilogue::Activation::kSilu}, t);
    m.tape.Linear(t, *m.w, {.residual = m.y}, m.y);
  });
}

TEST(TapeTest, GatesMayBeTheOutput) {
  ExpectGradient([](Machine& m) {
    m.tape.Linear(m.x, *m.w, {.activation = Epilogue::Activation::kGeluErf}, m.y);
    m.tape.Linear(m.x, *m.w, {.activation = Epilogue::Activation::kGeluTanh, .gate = m.y}, m.y);
  });
}

TEST(TapeTest, ColumnsHaveGradientsOfTheirOwn) {
  ExpectGradient([](Machine& m) {
    const OwnedTensor wide = m.tape.NewTensor(kRows, 3 * kCols);
    const Tensor a = wide.view.Cols(0, kCols);
    const Tensor b = wide.view.Cols(kCols, kCols);
    m.tape.Linear(m.x, *m.w, {}, a);
    m.tape.Linear(a, *m.w, {.activation = Epilogue::Activation::kTanh}, b);
    m.tape.Linear(b, *m.w, {.gate = a}, m.y);
  });
}

TEST(TapeTest, NormsInPlace) {
  ExpectGradient([](Machine& m) {
    m.tape.Linear(m.x, *m.w, {}, m.y);
    m.tape.LayerNorm(m.y, m.bias, m.bias, 1e-5, m.y);
    m.tape.Linear(m.x, *m.w, {.residual = m.y}, m.y);
  });
}

TEST(TapeTest, DropsTheSameOnTheWayBack) {
  ExpectGradient(
      [](Machine& m) {
        const OwnedTensor t = m.tape.NewTensor(kRows, kCols);
        m.tape.Linear(m.x, *m.w, {}, t);
        m.tape.Dropout(DropoutSite::kEmbedding, t);
        m.tape.Linear(t, *m.w, {.residual = t}, m.y);
      },
      0.3);
}

TEST(TapeTest, DropsTheSameWeightsOfAttentionOnTheWayBack) {
  ExpectGradient(
      [](Machine& m) {
        const AttentionShape shape = {.heads = 2, .head_dim = 2};
        const OwnedTensor tables = m.tape.NewIndices(1, 1);
        const std::shared_ptr<KeyValuePages> pages =
            m.tape.NewKeyValuePages(shape, 1, kRows, DType::kF32);
        const OwnedTensor qkv = m.tape.NewTensor(kRows, 3 * kCols);
        m.tape.Linear(m.x, *m.w, {}, m.y);
        m.tape.Dropout(DropoutSite::kEmbedding, m.y);
        m.tape.Recompute(m.y, [&m, shape, tables, pages, qkv] {
          for (int64_t part = 0; part < 3; ++part) {
            m.tape.Linear(m.y, *m.w, {}, qkv.view.Cols(part * kCols, kCols));
          }
          m.tape.AttentionSequence(shape, qkv, {}, *pages, tables, {WholeSequences(1, kRows), {}},
                                   m.y);
        });
      },
      0.3);
}

TEST(TapeTest, RecomputesWhatItDidNotKeep) {
  ExpectGradient([](Machine& m) {
    m.tape.Linear(m.x, *m.w, {}, m.y);
    for (int layer = 0; layer < 2; ++layer) {
      m.tape.Recompute(m.y, [&m] {
        m.tape.LayerNorm(m.y, m.bias, m.bias, 1e-5, m.x);
        m.tape.Linear(m.x, *m.w, {.residual = m.y}, m.y);
      });
    }
  });
}

// Each parameter is told once, with the gradient that it has in the end, however often the record
// uses it, and the head, which the loss alone uses, before the backward goes on.
TEST(TapeTest, TellsGradientsWhenTheyAreComplete) {
  Machine m(Random(kCols * kCols, 1));
  const auto gradient = [&](const Parameter& p) {
    std::vector<float> values(p.host.size());
    m.backend->Download(p.gradient, values);
    return values;
  };
  std::vector<std::string> told;
  std::map<std::string, std::vector<float>> gradients;
  m.tape.OnCompleteGradient([&](const Parameter& p) {
    told.push_back(p.name);
    gradients[p.name] = gradient(p);
  });
  for (int batch = 0; batch < 2; ++batch) {
    told.clear();
    m.tape.ZeroGradients();
    Loss(m, [](Machine& machine) {
      machine.tape.Linear(machine.x, *machine.w, {}, machine.y);
      for (int layer = 0; layer < 2; ++layer) {
        machine.tape.Recompute(machine.y, [&machine] {
          machine.tape.LayerNorm(machine.y, machine.bias, machine.bias, 1e-5, machine.x);
          machine.tape.Linear(machine.x, *machine.w, {.residual = machine.y}, machine.y);
        });
      }
    });
    m.tape.Backward();
    EXPECT_EQ(told, (std::vector<std::string>{"head", "bias", "w"}));
    for (const Parameter& p : m.parameters.all()) EXPECT_EQ(gradients[p.name], gradient(p));
  }
}

TEST(TapeTest, UpdatesWhatFollowsParameters) {
  Machine m(Random(kCols * kCols, 1));
  m.parameters.Store(*m.parameters.Find("w"), std::vector<float>(kCols * kCols, 0.0f));
  m.parameters.Store(*m.parameters.Find("bias"), std::vector<float>{1, 2, 3, 4});
  m.tape.Update();
  m.tape.Linear(m.x, *m.w, {.bias = m.bias}, m.y);
  std::vector<float> y(kRows * kCols);
  m.tape.Download(m.y, y);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], static_cast<float>(1 + i % kCols));
}

TEST(TapeTest, WeightsMustBeParameters) {
  Machine m(Random(kCols * kCols, 1));
  const std::vector<float> other(kCols * kCols, 1.0f);
  const HostMatrix part = {other.data(), DType::kF32, kCols, kCols};
  EXPECT_THROW(m.tape.PackLinear({&part, 1}, DType::kF32), std::logic_error);
}

}  // namespace
}  // namespace hippodrome::tape_test
