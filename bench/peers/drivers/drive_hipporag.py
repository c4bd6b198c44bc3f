"""Driver of hipporag; imports that an OpenAI endpoint does not need are stubbed."""

import logging
import sys
from types import ModuleType

from job import run

STUBBED_MODULES = {
    "vllm": ("SamplingParams", "LLM"),
    "gritlm": ("GritLM",),
    "litellm": (),
    "boto3": (),
    "botocore": (),
    "botocore.exceptions": ("ClientError",),
}


def stub_modules():
    """Register empty modules for heavy packages that are imported but unused."""
    for name, parts in STUBBED_MODULES.items():
        module = ModuleType(name)
        for part in parts:
            setattr(module, part, type(part, (Exception,), {}))
        sys.modules.setdefault(name, module)


def main(job):
    """Import, then run the action."""
    stub_modules()
    with job.measure_time("import"):
        from hipporag import HippoRAG
        from hipporag.utils.config_utils import BaseConfig
    for name in [*logging.root.manager.loggerDict]:
        if name.startswith(("hipporag", "httpx")):
            logging.getLogger(name).setLevel(logging.ERROR)
    with job.measure_time("open"):
        config = BaseConfig(
            save_dir=job.folder,
            llm_name=job.model,
            llm_base_url=job.base_url,
            # It picks its client by the model name.
            embedding_model_name=job.embed_model,
            embedding_base_url=job.base_url,
            dataset=None,
        )
        rag = HippoRAG(global_config=config)
    if job.action in ("build", "add"):
        with job.measure_time():
            rag.index(job.texts)
    elif job.action == "delete":
        text = next(row["text"] for row in job.documents if str(row["id"]) == job.delete)
        with job.measure_time():
            rag.delete([text])
    else:
        with job.measure_time("prepare"):
            rag.prepare_retrieval_objects()
        for method in job.methods:
            if method == "dpr":
                ask = rag.retrieve_dpr
            else:
                ask = rag.retrieve
            job.ask_questions(
                method, lambda text, ask=ask: ask([text], num_to_retrieve=job.top)[0].docs
            )


if __name__ == "__main__":
    run(main)
