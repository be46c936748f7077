#include "kernels/ssm/h3_ssm.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/h3/h3_problem.h"

namespace hippodrome::h3_ssm_test {
namespace {

// ---- Discretisation, taps and kernels -----------------------------------------------------------

// K[l] = 2 Re sum_n C_n dB_n exp(l log dA_n).
double KernelPoint(const reference::H3DiagonalSsm& ssm, int64_t l) {
  double sum = 0;
  for (size_t n = 0; n < ssm.da.size(); ++n) {
    sum += 2 * (ssm.c[n] * ssm.db[n] * std::exp(double(l) * std::log(ssm.da[n]))).real();
  }
  return sum;
}

void ExpectKernel(const H3Parameters& p, int64_t length) {
  const std::vector<double> kernel = H3Kernels(p, length);
  const int64_t heads = p.d_model / p.head_dim;
  ASSERT_EQ(kernel.size(), size_t(heads * length));
  for (int64_t h = 0; h < heads; ++h) {
    const reference::H3DiagonalSsm ssm = reference::Discretize(p, h);
    for (int64_t l = 0; l < length; l += 1 + length / 100) {
      ASSERT_NEAR(kernel[size_t(h * length + l)], KernelPoint(ssm, l), 1e-10) << l;
    }
  }
}

TEST(H3SsmTest, KernelIsTheSumOfItsModes) {
  for (const Discretization rule : {Discretization::kBilinear, Discretization::kZoh}) {
    for (const int64_t d_state : {2, 6, 64}) {
      ExpectKernel(
          RandomH3({.d_model = 12, .d_state = d_state, .discretization = rule}).parameters(), 3000);
    }
    ExpectKernel(
        RandomH3({.d_model = 12, .head_dim = 4, .n_ssm = 2, .discretization = rule}).parameters(),
        100);
  }
}

TEST(H3SsmTest, LongKernelsStayExact) {
  ExpectKernel(RandomH3({.d_model = 1}).parameters(), 200000);
}

TEST(H3SsmTest, ZohOfATinyStepHasNoCancellation) {
  RandomH3 layer({.d_model = 1, .d_state = 2, .discretization = Discretization::kZoh});
  H3Parameters p = layer.parameters();
  const float zero = 0;
  p.a_imag = std::span(&zero, 1);  // a real mode
  for (const float log_dt : {-2.0f, -4.5f, -5.0f, -20.0f, -60.0f}) {
    p.log_dt = std::span(&log_dt, 1);
    const H3Modes modes = DiscretizeH3(p);
    const double a = -std::exp(double{p.inv_a_real[0]});
    const double ratio = std::expm1(std::exp(double{log_dt}) * a) / a;
    EXPECT_NEAR(modes.db[0].real(), ratio * p.b[0], 1e-14 * ratio);
    EXPECT_NEAR(modes.db[0].imag(), ratio * p.b[1], 1e-14 * ratio);
  }
}

TEST(H3SsmTest, TapsAreTheImpulseResponse) {
  const RandomH3 layer({.d_model = 5, .d_state = 10});
  const std::vector<double> taps = H3Taps(layer.parameters());
  ASSERT_EQ(taps.size(), 50u);
  for (int64_t channel = 0; channel < 5; ++channel) {
    reference::H3ShiftSsm ssm = reference::Shift(layer.parameters(), channel);
    ssm.d = 0;
    std::vector<double> x(10);
    for (int64_t j = 0; j < 10; ++j) {
      EXPECT_NEAR(ssm.Step(j == 0 ? 1 : 0, x), taps[size_t(channel * 10 + j)], 1e-14);
    }
    EXPECT_NEAR(ssm.Step(0, x), 0, 1e-14);
  }
}

// ---- Gradients ----------------------------------------------------------------------------------

using Values = std::vector<float>;

size_t Size(int64_t count) { return static_cast<size_t>(count); }

// Parameters that can be changed one at a time.
class OpenLayer {
 public:
  explicit OpenLayer(const H3Parameters& p) : p_(p) {
    for (std::span<const float>* span : Spans()) {
      Values& values = storage_.emplace_back(span->begin(), span->end());
      *span = values;
    }
  }
  OpenLayer(const OpenLayer&) = delete;
  OpenLayer& operator=(const OpenLayer&) = delete;

  const H3Parameters& parameters() const { return p_; }
  // In the order of H3ParameterGradients.
  std::vector<Values>& values() { return storage_; }

 private:
  std::vector<std::span<const float>*> Spans() {
    storage_.reserve(9);
    return {&p_.shift_b,    &p_.shift_c, &p_.shift_d, &p_.d, &p_.log_dt,
            &p_.inv_a_real, &p_.a_imag,  &p_.b,       &p_.c};
  }

  H3Parameters p_;
  std::vector<Values> storage_;
};

double Dot(const std::vector<double>& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The taps and kernels with their skips.
std::vector<double> Taps(const H3Parameters& p) {
  std::vector<double> taps = H3Taps(p);
  for (int64_t c = 0; c < p.d_model; ++c) taps[Size(c * p.d_state)] += p.shift_d[Size(c)];
  return taps;
}

std::vector<double> Kernels(const H3Parameters& p, int64_t length) {
  std::vector<double> kernels = H3Kernels(p, length);
  for (int64_t h = 0; h < p.d_model / p.head_dim; ++h) kernels[Size(h * length)] += p.d[Size(h)];
  return kernels;
}

struct Case {
  H3Shape shape;
  float log_dt_shift = 0;
};

constexpr int64_t kLength = 37;

class H3GradientTest : public testing::TestWithParam<Case> {
 protected:
  H3GradientTest() : random_(GetParam().shape), layer_(random_.parameters()) {
    for (float& log_dt : layer_.values()[4]) log_dt += GetParam().log_dt_shift;
    for (const Values& values : layer_.values()) gradients_.emplace_back(values.size(), 99.0f);
    const H3Parameters& p = layer_.parameters();
    dtaps_ = RandomValues(p.d_model * p.d_state, 3);
    dk_ = RandomValues(p.d_model / p.head_dim * kLength, 4);
  }

  H3ParameterGradients Gradients() {
    auto& g = gradients_;
    return {g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]};
  }

  double Loss() const {
    const H3Parameters& p = layer_.parameters();
    return Dot(Taps(p), dtaps_) + Dot(Kernels(p, kLength), dk_);
  }

  // A difference quotient over the floats nearest to a step of `step`.
  double Slope(float& parameter, double step) const {
    const float at = parameter;
    const auto high = static_cast<float>(at + step);
    const auto low = static_cast<float>(at - step);
    parameter = high;
    const double above = Loss();
    parameter = low;
    const double below = Loss();
    parameter = at;
    return (above - below) / (double{high} - double{low});
  }

  RandomH3 random_;
  OpenLayer layer_;
  std::vector<Values> gradients_;
  Values dtaps_;
  Values dk_;
};

TEST_P(H3GradientTest, IsTheSlopeOfTheKernels) {
  H3TapGradient(layer_.parameters(), dtaps_, Gradients());
  H3KernelGradient(layer_.parameters(), dk_, kLength, Gradients());
  for (size_t i = 0; i < gradients_.size(); ++i) {
    SCOPED_TRACE(i);
    double largest = 0;
    for (const float g : gradients_[i]) largest = std::max(largest, std::abs(double{g}));
    for (size_t j = 0; j < gradients_[i].size(); ++j) {
      // Richardson's extrapolation; steps are not quite equal, being floats.
      constexpr double kStep = 1e-3;
      float& parameter = layer_.values()[i][j];
      const double slope = (4 * Slope(parameter, kStep) - Slope(parameter, 2 * kStep)) / 3;
      ASSERT_NEAR(gradients_[i][j], slope, 1e-6 * largest) << "element " << j;
    }
  }
}

TEST_P(H3GradientTest, SkipsAreAddedToTheFirst) {
  const H3Parameters& p = layer_.parameters();
  const Values taps = H3TapsWithSkips(p);
  const std::vector<double> expected_taps = Taps(p);
  for (size_t i = 0; i < taps.size(); ++i) ASSERT_FLOAT_EQ(taps[i], float(expected_taps[i]));
  for (const int64_t length : {1, 300}) {
    const Values kernels = H3KernelsWithSkips(p, length);
    const std::vector<double> expected = Kernels(p, length);
    double largest = 0;
    for (const double k : expected) largest = std::max(largest, std::abs(k));
    for (size_t i = 0; i < kernels.size(); ++i) {
      ASSERT_NEAR(kernels[i], expected[i], kUnitRoundoff * largest);
    }
  }
}

TEST_P(H3GradientTest, AnyOrderOfHeadsGivesTheSame) {
  H3KernelGradient(layer_.parameters(), dk_, kLength, Gradients());
  H3TapGradient(layer_.parameters(), dtaps_, Gradients());
  const std::vector<Values> expected = gradients_;
  const HeadLoop backwards = [](int64_t count, const std::function<void(int64_t)>& body) {
    for (int64_t i = count; i > 0; --i) body(i - 1);
  };
  H3KernelGradient(layer_.parameters(), dk_, kLength, Gradients(), backwards);
  H3TapGradient(layer_.parameters(), dtaps_, Gradients(), backwards);
  EXPECT_EQ(gradients_, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, H3GradientTest,
    testing::Values(Case{{.d_model = 3, .d_state = 6}}, Case{{.d_model = 1, .d_state = 2}},
                    Case{{.d_model = 6, .d_state = 8, .n_ssm = 2}},
                    Case{{.d_model = 6, .d_state = 8, .n_ssm = 1}},
                    Case{{.d_model = 8, .head_dim = 2, .d_state = 4, .n_ssm = 2}},
                    Case{{.d_model = 3, .d_state = 8, .discretization = Discretization::kZoh}},
                    // |z| on both sides of where phi is summed as a series.
                    Case{{.d_model = 3, .d_state = 16, .discretization = Discretization::kZoh},
                         -5.0f}));

}  // namespace
}  // namespace hippodrome::h3_ssm_test
