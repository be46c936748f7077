#include "server/handlers/model_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/status.h"
#include "server/handlers/encoder_info.h"

namespace hippodrome {
namespace {

// The same model, owned together with it.
std::shared_ptr<ServedDecoder> DecoderOf(const std::shared_ptr<ServedModel>& model) {
  return {model, model->decoder()};
}
std::shared_ptr<ServedEncoder> EncoderOf(const std::shared_ptr<ServedModel>& model) {
  return {model, model->encoder()};
}

ModelList::Models::const_iterator FindName(const ModelList::Models& models,
                                           const std::string& name) {
  return std::find_if(models.begin(), models.end(),
                      [&](const auto& model) { return model->info().name() == name; });
}

}  // namespace

ModelList::ModelList(std::vector<std::unique_ptr<ServedModel>> models)
    : models_(std::make_shared<Models>(std::make_move_iterator(models.begin()),
                                       std::make_move_iterator(models.end()))) {}

// ---- Finding ------------------------------------------------------------------------------------

std::shared_ptr<const ModelList::Models> ModelList::all() const {
  std::lock_guard lock(mutex_);
  return models_;
}

absl::StatusOr<std::shared_ptr<ServedModel>> ModelList::Find(const std::string& name) const {
  const std::shared_ptr<const Models> models = all();
  if (name.empty()) {
    if (models->empty()) return NotFound("this server has no model");
    return models->front();
  }
  const auto found = FindName(*models, name);
  if (found == models->end()) return NotFound("there is no model '" + name + "'");
  return *found;
}

absl::StatusOr<std::shared_ptr<ServedDecoder>> ModelList::FindDecoder(
    const std::string& name) const {
  if (name.empty()) {
    const std::shared_ptr<const Models> models = all();
    for (const auto& model : *models) {
      if (model->decoder() != nullptr) return DecoderOf(model);
    }
    return FailedPrecondition(models->empty()
                                  ? "this server has no model"
                                  : "no model of this server generates text: all are encoders");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Find(name));
  if (model->decoder() != nullptr) return DecoderOf(model);
  return FailedPrecondition("model '" + name + "' is an encoder: it does not generate text");
}

absl::StatusOr<std::shared_ptr<ServedEncoder>> ModelList::FindEncoder(
    const std::string& name) const {
  if (name.empty()) {
    for (const auto& model : *all()) {
      if (model->encoder() != nullptr) return EncoderOf(model);
    }
    return FailedPrecondition("no model of this server is an encoder");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, Find(name));
  if (model->encoder() != nullptr) return EncoderOf(model);
  return FailedPrecondition("model '" + name + "' is a decoder: only encoders can do this");
}

absl::StatusOr<std::shared_ptr<ServedEncoder>> ModelList::FindEncoder(
    const std::string& name, std::initializer_list<EncoderHead> heads) const {
  const auto fits = [heads](const ServedEncoder& encoder) {
    return std::find(heads.begin(), heads.end(), encoder.engine().config().head) != heads.end();
  };
  if (name.empty()) {
    const std::shared_ptr<const Models> models = all();
    for (const auto& model : *models) {
      if (model->encoder() != nullptr && fits(*model->encoder())) return EncoderOf(model);
    }
    return FailedPrecondition(std::string("no model of this server has the head ") +
                              HeadName(*heads.begin()));
  }
  HIPPODROME_ASSIGN_OR_RETURN(std::shared_ptr<ServedEncoder> encoder, FindEncoder(name));
  if (fits(*encoder)) return encoder;
  return FailedPrecondition("model '" + name + "' has the head " +
                            HeadName(encoder->engine().config().head) + ", but this call needs " +
                            HeadName(*heads.begin()));
}

// ---- Changing -----------------------------------------------------------------------------------

void ModelList::Publish(std::unique_ptr<ServedModel> model, Clock::time_point cut) {
  std::shared_ptr<ServedModel> added = std::move(model);
  std::lock_guard lock(mutex_);
  if (closed_) added->Close();
  Models models = *models_;
  const auto found = FindName(models, added->info().name());
  if (found == models.end()) {
    models.push_back(std::move(added));
  } else {
    leaving_.push_back({*found, cut});
    models[found - models.begin()] = std::move(added);
  }
  Replace(std::move(models));
}

absl::Status ModelList::Withdraw(const std::string& name, Clock::time_point cut) {
  std::lock_guard lock(mutex_);
  Models models = *models_;
  const auto found = FindName(models, name);
  if (found == models.end()) return NotFound("there is no model '" + name + "'");
  leaving_.push_back({*found, cut});
  models.erase(found);
  Replace(std::move(models));
  return absl::OkStatus();
}

void ModelList::Arrange(std::vector<std::string> names) {
  std::lock_guard lock(mutex_);
  arrangement_ = std::move(names);
  Replace(*models_);
}

void ModelList::Replace(Models models) {
  Sort(models);
  models_ = std::make_shared<Models>(std::move(models));
}

size_t ModelList::Rank(const std::string& name) const {
  return std::find(arrangement_.begin(), arrangement_.end(), name) - arrangement_.begin();
}

// An insertion sort: there are few, and those of one rank keep their order.
void ModelList::Sort(Models& models) const {
  const auto before = [this](const auto& a, const auto& b) {
    return Rank(a->info().name()) < Rank(b->info().name());
  };
  for (auto model = models.begin(); model != models.end(); ++model) {
    std::rotate(std::upper_bound(models.begin(), model, *model, before), model, model + 1);
  }
}

ModelList::Models ModelList::leaving() const {
  Models models;
  std::lock_guard lock(mutex_);
  for (const Leaving& leaving : leaving_) models.push_back(leaving.model);
  return models;
}

// Nobody finds those that leave any more: once this list alone holds one, that stays so.
std::vector<std::string> ModelList::Reap() {
  Models done;  // destroyed without the lock, for that takes time
  Models late;
  const Clock::time_point now = Clock::now();
  {
    std::lock_guard lock(mutex_);
    for (auto it = leaving_.begin(); it != leaving_.end();) {
      if (it->model.use_count() == 1) {
        done.push_back(std::move(it->model));
        it = leaving_.erase(it);
        continue;
      }
      if (it->cut <= now) late.push_back(it->model);
      ++it;
    }
  }
  for (const auto& model : late) {
    model->Abort(Unavailable("model '" + model->info().name() + "' was unloaded"));
  }
  std::vector<std::string> names;
  for (const auto& model : done) names.push_back(model->info().name());
  return names;
}

// ---- Of all models ------------------------------------------------------------------------------

void ModelList::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& model : *models_) model->Close();
  for (const Leaving& leaving : leaving_) leaving.model->Close();
}

void ModelList::Migrate() {
  for (const auto& model : *all()) model->Migrate();
  for (const auto& model : leaving()) model->Migrate();
}

void ModelList::Abort(const absl::Status& reason) {
  for (const auto& model : *all()) model->Abort(reason);
  for (const auto& model : leaving()) model->Abort(reason);
}

int64_t ModelList::pending() const {
  int64_t sum = 0;
  for (const auto& model : *all()) sum += model->pending();
  for (const auto& model : leaving()) sum += model->pending();
  return sum;
}

}  // namespace hippodrome
