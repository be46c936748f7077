// SSMs of every form that LongConv() takes, with reproducible random parameters.
#ifndef HIPPODROME_TESTS_KERNELS_RANDOM_LONG_CONV_H_
#define HIPPODROME_TESTS_KERNELS_RANDOM_LONG_CONV_H_

#include <cmath>
#include <string>
#include <vector>

#include "kernels/training_backend.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome {

// Parameters in the order of their names.
class RandomLongConv {
 public:
  // `shape`: the numbers of a DiagonalSsmParameters or an NplrParameters.
  explicit RandomLongConv(const LongConvParameters& shape) : parameters_(shape) {
    if (auto* nplr = std::get_if<NplrParameters>(&parameters_)) {
      const int64_t rows = nplr->n_ssm == 0 ? nplr->channels : nplr->n_ssm;
      a_real = Values(rows * nplr->modes, 0.4f, -0.7f);
      a_imag = Values(rows * nplr->modes, 15, 16);
      b = Values(rows * nplr->modes * 2);
      p = Values(rows * nplr->modes * 2, 0.7f);
      c = Values(nplr->channels * nplr->modes * 2);
      log_step = Values(nplr->channels, 0.7f, -3);
      d = Values(nplr->channels);
      return;
    }
    const auto& shared = std::get<DiagonalSsmParameters>(parameters_);
    const int64_t rows = shared.n_ssm == 0 ? shared.heads : shared.n_ssm;
    a_real = Values(rows * shared.modes, 0.4f, -0.5f);
    // kExpBoth stores logarithms.
    a_imag = Values(rows * shared.modes, shared.form == StateMatrixForm::kExpBoth ? 1.0f : 30.0f);
    c = Values(shared.heads * shared.modes * 2);
    log_step = Values(shared.heads, 0.5f, -3);
    d = Values(shared.heads);
  }

  // Without steps of their own, dt = 1.
  RandomLongConv& WithoutSteps() {
    log_step.clear();
    return *this;
  }

  LongConvParameters parameters() const {
    LongConvParameters view = parameters_;
    std::visit(
        [&](auto& of) {
          of.a_real = a_real;
          of.a_imag = a_imag;
          of.c = c;
          of.log_step = log_step;
          of.d = d;
        },
        view);
    if (auto* nplr = std::get_if<NplrParameters>(&view)) {
      nplr->b = b;
      nplr->p = p;
    }
    return view;
  }

  // As many gradients as there are parameters.
  LongConvParameterGradients Gradients() {
    return {
        .a_real = a_real, .a_imag = a_imag, .c = c, .log_step = log_step, .d = d, .b = b, .p = p};
  }

  struct Field {
    std::string name;
    std::vector<float>* values;
  };
  std::vector<Field> Fields() {
    return {{"a_real", &a_real}, {"a_imag", &a_imag},     {"b", &b}, {"p", &p},
            {"c", &c},           {"log_step", &log_step}, {"d", &d}};
  }

  std::vector<float> a_real, a_imag, b, p, c, log_step, d;

 private:
  // Multiples of 2^-14, so that small changes of them are exact.
  std::vector<float> Values(int64_t n, float scale = 1, float middle = 0) {
    std::vector<float> values = RandomValues(n, ++seed_, scale);
    for (float& value : values) value = std::round((value + middle) * 0x1p14f) * 0x1p-14f;
    return values;
  }

  LongConvParameters parameters_;
  uint32_t seed_ = 0;
};

// One of each form, small.
inline std::vector<RandomLongConv> SmallLongConvs() {
  std::vector<RandomLongConv> all;
  all.emplace_back(DiagonalSsmParameters{.channels = 6, .heads = 1, .modes = 5});
  all.emplace_back(DiagonalSsmParameters{.channels = 6, .heads = 3, .modes = 4, .n_ssm = 1});
  all.emplace_back(DiagonalSsmParameters{
      .channels = 5, .heads = 5, .modes = 3, .form = StateMatrixForm::kExpReal, .scale = 2});
  all.emplace_back(DiagonalSsmParameters{.channels = 12,
                                         .heads = 12,
                                         .modes = 9,
                                         .n_ssm = 2,
                                         .form = StateMatrixForm::kExpReal,
                                         .scale = 2});
  all.push_back(RandomLongConv(DiagonalSsmParameters{.channels = 4,
                                                     .heads = 4,
                                                     .modes = 17,
                                                     .n_ssm = 1,
                                                     .form = StateMatrixForm::kExpBoth})
                    .WithoutSteps());
  all.emplace_back(NplrParameters{.channels = 3, .modes = 4});
  all.emplace_back(NplrParameters{.channels = 18, .modes = 3, .n_ssm = 2});
  all.emplace_back(NplrParameters{.channels = 2, .modes = 4, .n_ssm = 1, .c_length = 64});
  all.emplace_back(NplrParameters{.channels = 9, .modes = 2, .c_length = 16});
  all.emplace_back(NplrParameters{.channels = 1, .modes = 3, .c_length = 21});
  return all;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_KERNELS_RANDOM_LONG_CONV_H_
