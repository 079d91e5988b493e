#!/usr/bin/env python3
"""Make the embedded pair: demo-chat and demo-draft, from a teacher to two MNN bundles.

    pip install -r tools/requirements-demo-pair.txt      (in an environment of its own)
    python tools/make_demo_pair.py --out tokforge_models/embedded

Stages, each kept in the work folder and skipped when it is there; a killed run goes on:

    corpus      the teacher's answers: tools/data/demo-answers.jsonl.xz, or written anew (--teacher)
    tokenizer   4,096 tokens of byte-level BPE
    target      learns the answers; its last half at 4 bits
    own text    the target answers every question that is not held out
    draft       learns the target's logits on that text, as the model card does it
    export      both, at 4 bits in blocks of 128
    check       in MNN: the bundles repeat themselves; loss, divergence, acceptance, sample answers

Progress goes to stderr, the figures of the check to stdout and to `report.json` in the work folder.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from pathlib import Path

import torch
from demo_pair.plan import FULL, QUICK, SEED, Plan
from demo_pair.shapes import Shape
from demo_pair.subject import Question, about_strangers, for_draft, questions
from transformers import Qwen3ForCausalLM
from transformers.utils.logging import disable_progress_bar

from demo_pair import checking, corpus, draft, exporting, target, tokenizing, training

KEPT_CORPUS = Path(__file__).resolve().parent / "data" / "demo-answers.jsonl.xz"


def main() -> None:
    """Run all stages."""
    options = _options()
    disable_progress_bar()
    torch.set_num_threads(options.threads)
    Maker(options, QUICK if options.quick else FULL).run()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the embedded pair of MNN bundles.")
    parser.add_argument("--out", type=Path, required=True, help="where the two bundles go")
    parser.add_argument("--work", type=Path, default=Path("build/demo-pair"), help="stages' files")
    parser.add_argument("--quick", action="store_true", help="a tiny pair in two or three minutes")
    parser.add_argument("--teacher", action="store_true", help="let the teacher write the corpus")
    parser.add_argument("--workers", type=int, default=1, help="processes of the teacher")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument("--model-threads", type=int, default=1, help="thread_num of the bundles")
    return parser.parse_args()


class Maker:
    """The stages in order; each finds the files of the stages before it."""

    def __init__(self, options: argparse.Namespace, plan: Plan) -> None:
        self.plan = plan
        self.options = options
        self.work: Path = options.work.resolve() / ("quick" if options.quick else "full")
        self.out: Path = options.out.resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        asked = questions(plan.pairs)[:: plan.one_question_in]
        self.asked = asked
        self.taught = [question for question in asked if not question.held_out]
        self.held_out = [question for question in asked if question.held_out]

    def run(self) -> None:
        """Run every stage whose product is missing, then check what came out."""
        samples = corpus.read(self._corpus())
        chat = self._tokenizer([sample.answer for sample in samples])
        big = self._target(chat, samples)
        self._own_text(chat, big)
        small = self._draft(chat, big)
        models = {"demo-chat": big, "demo-draft": small}
        for name, model in models.items():
            folder = self.work / name
            model.save_pretrained(folder)
            tokenizing.copy(self.work / "tokenizer", folder)
            exporting.export(folder, self.out / name, self.options.model_threads)
        groups = {
            "held-out questions": self._some(self.held_out),
            "questions about unknown things": self._some(about_strangers()),
            "taught questions": self._some(self.taught),
        }
        held_out = target.turns_of(chat, self.held_out, samples)
        report = checking.check(chat, models, held_out, groups, self.out)
        (self.work / "report.json").write_text(json.dumps(report, indent=2), encoding="utf-8")
        print(checking.render(report))

    def _some(self, group: list[Question]) -> list[Question]:
        return group[:: -(-len(group) // self.plan.judged)]

    def _corpus(self) -> Path:
        if not self.options.teacher:
            return KEPT_CORPUS
        product = self.work / "demo-answers.jsonl.xz"
        if not product.exists():
            workers = self.options.workers
            context = multiprocessing.get_context("spawn")
            shares = [
                context.Process(
                    target=_answer, args=(self.asked, self.work / "corpus", number, workers)
                )
                for number in range(workers)
            ]
            for share in shares:
                share.start()
            for share in shares:
                share.join()
            if any(share.exitcode for share in shares):
                raise SystemExit("the teacher failed; run again to go on")
            corpus.collect(self.asked, self.work / "corpus", product)
        return product

    def _tokenizer(self, answers: list[str]) -> tokenizing.Chat:
        folder = self.work / "tokenizer"
        if not (folder / "tokenizer.json").exists():
            wordings = [wording for question in self.taught for wording in question.wordings]
            tokenizing.train([*answers, *wordings], folder)
        return tokenizing.Chat(folder)

    def _target(self, chat: tokenizing.Chat, samples: list[corpus.Sample]) -> Qwen3ForCausalLM:
        plan = self.plan
        loss = target.loss_on(
            chat,
            target.turns_of(chat, self.taught, samples),
            target.turns_of(chat, self.held_out, samples),
            (plan.target_rows, plan.row),
            SEED,
        )
        model = self._fresh(plan.target, chat, SEED)
        training.train(model, plan.target_schedule, loss, self.work / "target.pt", "target")
        return model

    def _own_text(self, chat: tokenizing.Chat, model: Qwen3ForCausalLM) -> None:
        plan = self.plan
        more = for_draft(plan.pairs, plan.more_pairs)[:: plan.one_question_in]
        wordings = [w for question in self.taught for w in question.wordings]
        more_wordings = [w for question in more if not question.held_out for w in question.wordings]
        target.write_own_text(
            model,
            chat,
            [*wordings[:: plan.own_wordings_one_in], *more_wordings[:: plan.own_wordings_one_in]],
            temperatures=plan.temperatures,
            slots=plan.slots,
            path=self.work / "own-text.jsonl",
            seed=SEED,
        )

    def _draft(self, chat: tokenizing.Chat, big: Qwen3ForCausalLM) -> Qwen3ForCausalLM:
        plan = self.plan
        path = self.work / "scored.pt"
        if not path.exists():
            texts = target.read_own_text(self.work / "own-text.jsonl")
            turns = [text.turn() for text in texts]
            draft.score(big, chat, turns, plan.row, SEED).save(path)
        loss = draft.loss_on(draft.Scored.load(path), plan.draft_rows, SEED)
        model = self._fresh(plan.draft, chat, SEED + 1)
        training.train(model, plan.draft_schedule, loss, self.work / "draft.pt", "draft")
        return model

    def _fresh(self, shape: Shape, chat: tokenizing.Chat, seed: int) -> Qwen3ForCausalLM:
        return shape.build(tokenizing.VOCABULARY, chat.stop, chat.end_of_text, seed)


def _answer(asked: list[Question], folder: Path, worker: int, workers: int) -> None:
    torch.set_num_threads(1)
    corpus.write_share(asked, folder, worker, workers)


if __name__ == "__main__":
    main()
