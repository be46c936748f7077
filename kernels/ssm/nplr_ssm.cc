#include "kernels/ssm/nplr_ssm.h"

#include <algorithm>

#include "kernels/ssm/nplr_modes.h"

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

// Calls body(first, count) for the channels [first, first + count) of each group.
void ForEachGroup(
    const NplrParameters& p, const HeadLoop& loop,
    const std::function<void(std::span<const NplrNumbers> group, int64_t first)>& body) {
  loop((p.channels + kNplrLanes - 1) / kNplrLanes, [&](int64_t index) {
    const int64_t first = index * kNplrLanes;
    std::vector<NplrNumbers> numbers;
    for (int64_t c = first; c < std::min(first + kNplrLanes, p.channels); ++c) {
      numbers.push_back(NumbersOfChannel(p, c));
    }
    body(numbers, first);
  });
}

NplrGroup DiscretizeGroup(std::span<const NplrNumbers> numbers, int64_t modes) {
  NplrGroup group(static_cast<size_t>(modes));
  for (size_t lane = 0; lane < numbers.size(); ++lane) {
    DiscretizeNplr(numbers[lane], static_cast<int64_t>(lane), group);
  }
  return group;
}

void AddNumbers(const NplrNumbers& x, NplrNumbers& sum) {
  const auto add = [](const std::vector<Complex>& from, std::vector<Complex>& to) {
    for (size_t n = 0; n < from.size(); ++n) to[n] += from[n];
  };
  add(x.lambda, sum.lambda);
  add(x.b, sum.b);
  add(x.p, sum.p);
  add(x.c, sum.c);
  sum.dt += x.dt;
}

void StorePairs(const std::vector<Complex>& values, int64_t row, std::span<float> to) {
  size_t at = static_cast<size_t>(row) * 2 * values.size();
  for (const Complex& value : values) {
    to[at++] = static_cast<float>(value.real());
    to[at++] = static_cast<float>(value.imag());
  }
}

// The gradients of row `row` of Lambda, B and P: those of its channels, summed.
void StoreGradientRow(const NplrParameters& p, int64_t row, std::span<const NplrNumbers> channels,
                      const LongConvParameterGradients& gradients) {
  const int64_t rows = NplrRows(p);
  NplrNumbers sum = channels[static_cast<size_t>(row)];
  for (int64_t c = row + rows; c < p.channels; c += rows) {
    AddNumbers(channels[static_cast<size_t>(c)], sum);
  }
  const NplrNumbers x = NumbersOfChannel(p, row);
  StorePairs(sum.b, row, gradients.b);
  StorePairs(sum.p, row, gradients.p);
  for (int64_t n = 0; n < p.modes; ++n) {
    const auto i = static_cast<size_t>(n);
    const auto at = static_cast<size_t>(row * p.modes + n);
    gradients.a_real[at] = static_cast<float>(sum.lambda[i].real() * x.lambda[i].real());
    gradients.a_imag[at] = static_cast<float>(-sum.lambda[i].imag());
  }
}

}  // namespace

// With C~ = C (I - dA^n) and K~ the kernel of C~ in the place of C, K[l + n] = K[l] - K~[l], and
// the first n points are those of NplrCircularKernel().
std::vector<double> NplrKernel(const NplrParameters& p, int64_t length, const HeadLoop& loop) {
  std::vector<double> kernels(static_cast<size_t>(p.channels * length));
  const int64_t circle = std::min(p.c_length, length);
  ForEachGroup(p, loop, [&](std::span<const NplrNumbers> numbers, int64_t first) {
    std::vector<double> values(static_cast<size_t>((length - circle) * kNplrLanes));
    NplrGroupKernel(DiscretizeGroup(numbers, p.modes), length - circle, values.data());
    for (size_t lane = 0; lane < numbers.size(); ++lane) {
      double* kernel = kernels.data() + (first + static_cast<int64_t>(lane)) * length;
      if (circle > 0) NplrCircularKernel(numbers[lane], p.c_length, std::span(kernel, circle));
      for (int64_t l = circle; l < length; ++l) {
        const double value = values[static_cast<size_t>((l - circle) * kNplrLanes) + lane];
        kernel[l] = circle > 0 ? kernel[l - circle] - value : value;
      }
    }
  });
  return kernels;
}

void NplrKernelGradient(const NplrParameters& p, std::span<const double> dk, int64_t length,
                        const LongConvParameterGradients& gradients, const HeadLoop& loop) {
  std::vector<NplrNumbers> of_channel(static_cast<size_t>(p.channels));
  const int64_t circle = std::min(p.c_length, length);
  ForEachGroup(p, loop, [&](std::span<const NplrNumbers> numbers, int64_t first) {
    std::vector<double> values(static_cast<size_t>((length - circle) * kNplrLanes));
    std::vector<std::vector<double>> circles;
    for (size_t lane = 0; lane < numbers.size(); ++lane) {
      const auto at = static_cast<size_t>(first) + lane;
      const auto of_kernel =
          dk.subspan(at * static_cast<size_t>(length), static_cast<size_t>(length));
      std::vector<double> rest(of_kernel.begin(), of_kernel.end());
      for (int64_t l = length - 1; l >= circle; --l) {
        const double value = rest[static_cast<size_t>(l)];
        values[static_cast<size_t>((l - circle) * kNplrLanes) + lane] = circle > 0 ? -value : value;
        if (circle > 0) rest[static_cast<size_t>(l - circle)] += value;
      }
      rest.resize(static_cast<size_t>(circle));
      circles.push_back(std::move(rest));
    }
    const NplrGroup group_gradients =
        NplrGroupGradient(DiscretizeGroup(numbers, p.modes), length - circle, values.data());
    for (size_t lane = 0; lane < numbers.size(); ++lane) {
      NplrNumbers& to = of_channel[static_cast<size_t>(first) + lane];
      to = DiscretizeNplrGradient(numbers[lane], static_cast<int64_t>(lane), group_gradients);
      if (circle > 0)
        AddNumbers(NplrCircularGradient(numbers[lane], p.c_length, circles[lane]), to);
    }
  });
  for (int64_t row = 0; row < NplrRows(p); ++row) StoreGradientRow(p, row, of_channel, gradients);
  for (int64_t c = 0; c < p.channels; ++c) {
    const NplrNumbers& x = of_channel[static_cast<size_t>(c)];
    StorePairs(x.c, c, gradients.c);
    const double dt = std::exp(double{p.log_step[static_cast<size_t>(c)]});
    gradients.log_step[static_cast<size_t>(c)] = static_cast<float>(x.dt * dt);
  }
}

}  // namespace hippodrome
