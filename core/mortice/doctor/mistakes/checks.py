"""What the tools of `doctor.tools` find, and what other parts tell: described here, looked for where it is asked."""

from __future__ import annotations

from mortice.doctor.rule import Rule, register


@register
class CannotOverfit(Rule):
    """Found by `doctor.overfit_one_batch`."""

    id = "D01"
    title = "The model cannot memorise one batch"
    why = "A model that cannot learn a few samples by heart will not learn many: something is broken before any data is short."
    remedy = "Look at the layers without gradient, the pairing of loss and targets, and the learning rate."


@register
class RegulariserMisses(Rule):
    """Found by `doctor.check_regularization`."""

    id = "D17"
    title = "Regularisation that does not reach the parameters"
    why = "A stronger penalty must cost training loss and shrink weights; one that does neither is not applied to them."
    remedy = "Give weight_decay to the group of the parameters that are trained, and check that the optimizer has them."


@register
class BestAtTheEdge(Rule):
    """Found by `doctor.sweep_verdict`."""

    id = "D19"
    title = "Best hyper-parameter at the edge of the interval"
    why = "The loss was still falling where the search ended: the best value lies outside, and was not tried."
    remedy = "Extend the range beyond the best value and search again."


@register
class WrongScores(Rule):
    """Told by `mortice.metrics`, which warns of it without the doctor too."""

    id = "D24"
    title = "ROC AUC fed with the wrong scores"
    why = "The area is of how scores of the positive class rank: of the other class it is 1 - AUC, of hard labels one point."
    remedy = (
        "Pass probabilities of the positive class, softmax(logits, 1)[:, 1] or sigmoid(logit), before any threshold."
    )


@register
class PlottedWithGraph(Rule):
    """An error that names the tensor: no rule watches for it."""

    id = "D44"
    title = "Plotting a tensor that has a graph, in a new window each time"
    why = "A tensor in the graph is no number yet, and keeping it keeps every step's graph; a window without a name is a new one."
    remedy = "Plot loss.item() or loss.detach(), in a window with a name: mortice.utils.plots.Plots does both."


# ---- check_gradients ----


@register
class NoGradient(Rule):
    """Found by `doctor.check_gradients`."""

    id = "C01"
    title = "Parameters that no gradient reaches"
    why = "They stay as they were initialised: the layer is not used, or its output is cut out of the graph on the way to the loss."
    remedy = "Use the layer in forward(), and look for detach(), .data, item(), argmax() or no_grad() behind it."


@register
class ZeroGradients(Rule):
    """Found by `doctor.check_gradients`."""

    id = "C02"
    title = "Layers whose gradients are all zero"
    why = "The layer is in the graph and nothing comes back: what follows is dead (ReLU below zero), saturated or constant."
    remedy = (
        "Look at the activation behind it, lower the learning rate, or initialise anew (kaiming_normal_, small biases)."
    )


@register
class BadGradients(Rule):
    """Found by `doctor.check_gradients`."""

    id = "C03"
    level = "error"
    title = "Gradients that are NaN or infinite"
    why = "One step with them makes the parameters NaN, and everything after it."
    remedy = (
        "Look at log, sqrt, division and norm at 0, at exp of large values, and at NaN in the batch (check_inputs)."
    )


@register
class VanishingGradients(Rule):
    """Found by `doctor.check_gradients`."""

    id = "C04"
    title = "Vanishing gradients"
    why = "The first layers hardly move while the last ones learn: the network trains as if it were shallow."
    remedy = "Use ReLU or its kin in place of sigmoid and tanh, normalisation, residual connections, or kaiming/xavier initialisation."


@register
class ExplodingGradients(Rule):
    """Found by `doctor.check_gradients`."""

    id = "C05"
    title = "Exploding gradients"
    why = "A step of an ordinary learning rate throws the weights far away from where the gradient was true."
    remedy = "Scale inputs and targets to about 1, initialise smaller, clip gradients, or lower the learning rate."


@register
class NotOptimized(Rule):
    """Found by `doctor.check_gradients` with an optimizer."""

    id = "C06"
    title = "The optimizer does not have the model's parameters"
    why = "A parameter that no optimizer has is not trained, whatever its gradient."
    remedy = "Make the optimizer from model.parameters() after the model has its final layers, and keep layers in ModuleList."


# ---- check_inputs ----


@register
class NotANumber(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C11"
    level = "error"
    title = "NaN or infinity in the data"
    why = "One NaN makes the loss NaN, and with it all parameters at the next step."
    remedy = "Leave such samples out or fill them: nan_to_num(), or the mean of the feature."


@register
class NotScaled(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C12"
    title = "Inputs that are not scaled"
    why = "Initialisation and learning rates are made for inputs of about 1: large ones saturate, and the largest feature decides alone."
    remedy = "Divide images by 255 (ToTensor does), and give features mean 0 and deviation 1, with the training set's figures."


@register
class WrongLayout(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C13"
    title = "Images with channels last"
    why = "Layers read (N, C, H, W): the height would be taken for the channels."
    remedy = "Use x.permute(0, 3, 1, 2), once, in the dataset or its transform."


@register
class WrongDtype(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C14"
    title = "Data of a dtype that layers and losses do not take"
    why = (
        "Layers want float32 inputs, cross_entropy whole numbers (int64) as classes, regression and BCE losses floats."
    )
    remedy = "Convert it in the dataset: x.float(), and y.long() for classes."


@register
class ConstantFeatures(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C15"
    title = "Inputs that are the same for every sample"
    why = "What is the same for all samples cannot tell them apart, and a constant feature is divided by 0 when it is scaled."
    remedy = "Look at how the data is read; drop features that never change."


@register
class Duplicates(Rule):
    """Found by `doctor.check_inputs` and `doctor.check_dataset`."""

    id = "C16"
    title = "Samples that come more than once"
    why = "The same sample many times counts as many; in part it is the same as fewer data."
    remedy = "Look at how the data is read and joined, and keep one of each."


@register
class LabelLeakage(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C17"
    title = "A feature that gives the label away"
    why = "The model reads the label from its input; where labels are not known, that input will not be there."
    remedy = "Leave the feature out."


@register
class LabelsOutOfRange(Rule):
    """Found by `doctor.check_inputs`."""

    id = "C18"
    title = "Labels out of range"
    why = "Classes are numbered from 0 to C - 1: others fail in the loss, or make an output that no sample ever has."
    remedy = "Number the classes from 0: y - 1, or y.unique(return_inverse=True)."


@register
class NotShuffled(Rule):
    """Found by `doctor.check_inputs` of a loader."""

    id = "C19"
    title = "Batches in the order of the classes"
    why = "A batch of one class pulls all parameters towards that class, and the next batch back again."
    remedy = "Pass shuffle=True to the DataLoader of the training set."


# ---- check_dataset ----


@register
class UnreadableItems(Rule):
    """Found by `doctor.check_dataset`."""

    id = "C21"
    level = "error"
    title = "Items that cannot be read"
    why = "Training ends at the first of them, perhaps after hours."
    remedy = "Mend or leave out these items; a dataset that filters them once, when it is made, is the simplest."


@register
class RaggedItems(Rule):
    """Found by `doctor.check_dataset`."""

    id = "C22"
    title = "Items of different shapes or kinds"
    why = "default_collate stacks items into a batch, which needs the same shape and kind of each."
    remedy = "Resize and crop images in the transform; pad sequences in a collate_fn (pad_sequence)."


@register
class Imbalance(Rule):
    """Found by `doctor.check_dataset`."""

    id = "C23"
    title = "Classes that are hardly there"
    why = "A model that always answers the largest class has a good accuracy and has learnt nothing of the others."
    remedy = "Weigh the loss (weight=, pos_weight=), use WeightedRandomSampler, and judge by F1 or AUC for each class."


@register
class TestInTrain(Rule):
    """Found by `doctor.check_dataset` with a test set."""

    id = "C24"
    title = "Test samples that are in the training set"
    why = "The score on them is of memory: the model looks better than it is."
    remedy = (
        "Split before augmenting and oversampling, by person, video or patient where there are several samples of one."
    )


@register
class Contradictions(Rule):
    """Found by `doctor.check_inputs` and `doctor.check_dataset`."""

    id = "C25"
    title = "The same sample with different labels"
    why = "No model can be right on both: the loss has a floor, and labels may have lost their samples on the way."
    remedy = "Check that samples and labels are shuffled and filtered together; decide on one label for each."


@register
class UnknownClasses(Rule):
    """Found by `doctor.check_dataset` with a test set."""

    id = "C26"
    title = "Test classes that the training set does not have"
    why = "The model cannot answer what it was never shown: all those samples are wrong."
    remedy = "Split by class (stratified), and use one list of classes for both sets."


# ---- find_lr, compare ----


@register
class NoRateHelps(Rule):
    """Found by `doctor.find_lr`."""

    id = "C31"
    title = "No learning rate lowers the loss"
    why = "If the loss falls at no rate from tiny to huge, the rate is not what is wrong."
    remedy = "Run overfit_one_batch and check_gradients: they say which part does not learn."


@register
class RateTooHigh(Rule):
    """Found by `doctor.find_lr`."""

    id = "C32"
    title = "The optimizer's learning rate is where the loss diverges"
    why = "Steps overshoot: the loss jumps or becomes NaN."
    remedy = "Use the suggested rate, with a warm-up if it is to be higher later."


@register
class RunsPart(Rule):
    """Found by `doctor.compare`."""

    id = "C41"
    title = "Two runs part"
    why = "What comes first is where to look: everything after it differs because of it."
    remedy = "Look at that layer: its seed, its mode, its inputs, its backend's kernel."
