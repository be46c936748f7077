#include "kernels/tape/trained_handles.h"

#include <stdexcept>

namespace hippodrome {
namespace {

Parameter& Known(Parameters& parameters, std::span<const float> values) {
  Parameter* parameter = parameters.At(values);
  if (parameter == nullptr) throw std::logic_error("tape: weights that are no parameters");
  return *parameter;
}

// Add each array, and set where its gradient is computed.

H3ParameterGradients AddArrays(const H3Parameters& p, SsmArrays& arrays) {
  return {.shift_b = arrays.Add(p.shift_b),
          .shift_c = arrays.Add(p.shift_c),
          .shift_d = arrays.Add(p.shift_d),
          .d = arrays.Add(p.d),
          .log_dt = arrays.Add(p.log_dt),
          .inv_a_real = arrays.Add(p.inv_a_real),
          .a_imag = arrays.Add(p.a_imag),
          .b = arrays.Add(p.b),
          .c = arrays.Add(p.c)};
}

LongConvParameterGradients AddArrays(const DiagonalSsmParameters& p, SsmArrays& arrays) {
  return {.a_real = arrays.Add(p.a_real),
          .a_imag = arrays.Add(p.a_imag),
          .c = arrays.Add(p.c),
          .log_step = arrays.Add(p.log_step),
          .d = arrays.Add(p.d)};
}

LongConvParameterGradients AddArrays(const NplrParameters& p, SsmArrays& arrays) {
  return {.a_real = arrays.Add(p.a_real),
          .a_imag = arrays.Add(p.a_imag),
          .c = arrays.Add(p.c),
          .log_step = arrays.Add(p.log_step),
          .d = arrays.Add(p.d),
          .b = arrays.Add(p.b),
          .p = arrays.Add(p.p)};
}

}  // namespace

TrainedLinear::TrainedLinear(TrainingBackend& backend_of, Parameters& parameters,
                             std::span<const HostMatrix> parts, DType dtype)
    : backend(backend_of) {
  int64_t out = 0;
  for (const HostMatrix& part : parts) out += part.rows;
  weights = backend.NewTrainedLinear(out, parts[0].cols, dtype);
  gradient = backend.NewTensor(out, parts[0].cols);
  int64_t row = 0;
  for (const HostMatrix& part : parts) {
    const auto* first = static_cast<const float*>(part.data);
    Parameter& parameter = Known(parameters, {first, static_cast<size_t>(part.rows * part.cols)});
    parts_.push_back(&parameter);
    parameter.gradient = gradient.view.Rows(row, part.rows);
    row += part.rows;
  }
  Update();
}

void TrainedLinear::Update() {
  std::vector<Tensor> values;
  for (const Parameter* part : parts_) values.push_back(part->value);
  backend.PackTrainedLinear(values, *weights);
}

TrainedRows::TrainedRows(TrainingBackend& backend, Parameter& parameter, Tensor place,
                         Tensor gradient)
    : backend_(backend), parameter_(parameter), place_(place) {
  parameter.gradient = gradient;
}

void TrainedRows::Update() { backend_.Copy(parameter_.value, place_); }

bool TrainedRows::Holds(Tensor x) const {
  const auto* first = static_cast<const char*>(place_.data);
  const auto* at = static_cast<const char*>(x.data);
  const int64_t bytes = place_.rows * place_.stride * static_cast<int64_t>(SizeOf(place_.dtype));
  return x.data != nullptr && at >= first && at < first + bytes;
}

std::span<float> SsmArrays::Add(std::span<const float> values) {
  if (values.empty()) return {};
  Parameter& parameter = Known(parameters_, values);
  const OwnedTensor gradient =
      backend_.NewTensor(parameter.value.view.rows, parameter.value.view.cols);
  parameter.gradient = gradient;
  return arrays_.emplace_back(Array{parameter, std::vector<float>(values.size()), gradient})
      .host_gradient;
}

void SsmArrays::Fetch() {
  for (Array& array : arrays_) parameters_.Fetch(array.parameter);
}

void SsmArrays::Upload() {
  for (Array& array : arrays_) backend_.Upload(array.host_gradient, array.gradient);
}

std::vector<Parameter*> SsmArrays::parameters() const {
  std::vector<Parameter*> all;
  for (const Array& array : arrays_) all.push_back(&array.parameter);
  return all;
}

TrainedH3::TrainedH3(TrainingBackend& backend, Parameters& parameters, const H3Parameters& ssm,
                     int64_t longest, DType dtype)
    : weights(backend.PrepareH3Convolution(ssm, longest, dtype)),
      sums(backend.NewH3Gradients(*weights)),
      backend_(backend),
      ssm_(ssm),
      arrays_(backend, parameters),
      gradients_(AddArrays(ssm, arrays_)),
      longest_(longest),
      dtype_(dtype) {}

void TrainedH3::Update() {
  arrays_.Fetch();
  weights = backend_.PrepareH3Convolution(ssm_, longest_, dtype_);
}

void TrainedH3::Collect() {
  backend_.TakeH3Gradients(*weights, ssm_, *sums, gradients_);
  arrays_.Upload();
}

TrainedLongConv::TrainedLongConv(TrainingBackend& backend, Parameters& parameters,
                                 const LongConvParameters& ssm, int64_t longest, DType dtype)
    : weights(backend.PrepareLongConv(ssm, longest, dtype)),
      sums(backend.NewLongConvGradients(*weights)),
      backend_(backend),
      ssm_(ssm),
      arrays_(backend, parameters),
      gradients_(std::visit([&](const auto& p) { return AddArrays(p, arrays_); }, ssm)),
      longest_(longest),
      dtype_(dtype) {}

void TrainedLongConv::Update() {
  arrays_.Fetch();
  weights = backend_.PrepareLongConv(ssm_, longest_, dtype_);
}

void TrainedLongConv::Collect() {
  backend_.TakeLongConvGradients(*weights, ssm_, *sums, gradients_);
  arrays_.Upload();
}

}  // namespace hippodrome
