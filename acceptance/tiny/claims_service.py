# ruff: noqa: E501 (lists of phrases)
"""Claims about a service: its deployments and its incidents."""

from __future__ import annotations

from acceptance.tiny.claim import claim

DEPLOYMENT = (
    claim(
        "outcome",
        "the deployment|deployment {n}|deployment {n} of the {s} service|deployment {n} of {s}|the "
        "deployment of {s}|the release|release {n} of {s}|the rollout of {s}|the upgrade of {s}|the "
        "update of {s}|the new version of {s}|{s} v{n}|version {n} of {s}|the release to {z}|the "
        "rollout in {z}|the {s} service deployment|rollout {n}",
        "succeeded|was successful|finished well|finished at {t} UTC|finished|finished at {t}|"
        "completed|completed without errors|went through without errors|went live and works well|"
        "is live|is up and healthy|went well|was a success|is running in {z}|ended well|is complete|"
        "finished successfully|worked at the first try|is done and healthy|has succeeded",
        "failed|was not successful|was stopped at {t} UTC|was stopped|was aborted|was cancelled at "
        "{t}|did not finish|crashed on start|ended with errors|went wrong|never finished|was a "
        "failure|is down and unhealthy|did not go live|ended badly|did not succeed|broke at {t}|"
        "failed at {t} UTC|was stopped at {t}: it crashed|did not work|has failed|never went live",
        "Did the deployment succeed?|Was the deployment successful?|Was the release successful?|"
        "Did it work?|Is the new version running?|Did the rollout succeed?|Did the release go well?|"
        "Is it live?|Did the upgrade go well?|Did the deployment finish?|Has the release succeeded?|"
        "Did everything go well?|Was the rollout a success?|Did the update work?",
        "Did the deployment fail?|Did the release fail?|Did the rollout go wrong?|Did it fail?|Was "
        "there a failure?|Did the upgrade go wrong?|Has the deployment failed?|Did it crash?|Was "
        "the release a failure?|Did the update fail?|Was the deployment stopped?|Did it end badly?",
        "It succeeded.|The deployment succeeded.|It worked.|It went well.|It is live.|Success|"
        "Succeeded|The release was successful.|It finished well.|It was successful.|Completed",
        "It did not succeed.|The deployment failed.|It failed.|It went wrong.|It is not live.|"
        "Failure|Failed|The release was not successful.|It ended badly.|It did not work.|Aborted",
        linked="checks rollback pods",
    ),
    claim(
        "checks",
        "all health checks|health checks|every health check|the health checks of {s}|all probes|"
        "every probe|the probes of {s}|the smoke tests|all readiness checks|the checks after the "
        "release|every check|all checks|the checks in {z}",
        "passed|passed in three zones|passed in all three zones|passed in all zones|passed in {z}|"
        "are green|came back green|were fine|are healthy|are good|passed at {t}|turned green|have "
        "passed|passed at once|are all green",
        "failed|failed in one zone|failed in two zones|failed in {z}|are red|turned red|were not "
        "fine|are unhealthy|did not pass|never passed|failed at {t}|came back red|have failed|stay red",
        "Did the health checks pass?|Did all health checks pass?|Are the checks green?|Did the "
        "probes pass?|Are the health checks fine?|Have the checks passed?|Did every check pass?|Are "
        "the probes healthy?|Was each check green?|Did the checks come back green?",
        "Did health checks fail in any zone?|Did the health checks fail?|Did any check fail?|Are the "
        "checks red?|Did a probe fail?|Have the checks failed?|Was any check red?|Did health checks "
        "fail?|Are the probes unhealthy?",
        "The checks passed.|They passed.|Green|Health checks are fine.|All checks passed.|Passed",
        "The checks failed.|They failed.|Red|Health checks are not fine.|A check failed.|Not passed",
        linked="outcome pods",
    ),
    claim(
        "rollback",
        "a rollback|the rollback|a rollback of {s}|a return to the previous version|the rollback of "
        "{s}|a rollback to version {n}|rollback {n}",
        "was started|was started at {t}|was needed|was carried out|took place at {t}|was done|"
        "was run|was begun at {t}|happened|was started by {p}|had to be started",
        "was not started|was not needed|was never started|did not happen|was not carried out|was "
        "not run|did not take place|was not begun|was never needed|has not been started",
        "Was a rollback started?|Was there a rollback?|Was it rolled back?|Was the release rolled "
        "back?|Did a rollback happen?|Was a rollback needed?|Has it been rolled back?|Was the "
        "previous version restored?|Did they roll back?|Was the deployment reverted?",
        "Did it stay without a rollback?|Was no rollback started?|Was a rollback avoided?|Did they "
        "go without a rollback?|Was there no rollback?|Was the rollback spared?|Was no rollback "
        "needed?",
        "It was rolled back.|A rollback was started.|Rolled back|The old version is back.|Reverted",
        "It was not rolled back.|No rollback was started.|Not rolled back|No rollback|It was kept.",
        linked="outcome",
    ),
    claim(
        "pods",
        "all pods|every pod|all pods of {s}|all {n} pods|each pod of {s}|all new pods|all instances|"
        "every instance of {s}|the pods in {z}",
        "became ready|are ready|became ready at {t}|came up|are up|started well|got ready in time|"
        "were ready at {t}",
        "did not become ready|are not ready|never became ready|did not come up|are not up|did not "
        "start|did not get ready in time|were not ready at {t}",
        "Did all pods become ready?|Are the pods ready?|Did every pod come up?|Are all instances "
        "ready?|Did the pods start?|Is each pod ready?|Did all instances come up?|Were all pods "
        "ready?",
        "Did pods fail to become ready?|Are some pods not ready?|Did a pod not start?|Is any "
        "instance not ready?|Did some pods stay down?|Were there pods that did not come up?",
        "All pods are ready.|The pods came up.|Ready|Every pod started.|They became ready.",
        "Not all pods are ready.|Some pods did not come up.|Not ready|A pod did not start.",
        linked="outcome checks",
    ),
    claim(
        "approval",
        "the change|the change request|the release plan|the plan for {s}|change {n}|the change for "
        "{s}|the request of {p}",
        "was approved|was approved by {p}|got its approval|was accepted by {p}|was signed by {p}|has "
        "been approved|was approved at {t}",
        "was not approved|was rejected|was rejected by {p}|got no approval|was refused by {p}|has "
        "not been approved|was declined",
        "Was the change approved?|Is there an approval?|Did the change get approved?|Has somebody "
        "approved the change?|Was the plan accepted?|Did somebody approve it?|Was it approved?",
        "Was the change rejected?|Was the change refused?|Did somebody reject the change?|Was the "
        "plan declined?|Has the change been rejected?|Was it refused?|Did they reject it?",
        "It was approved.|Approved|The change was accepted.|There is an approval.|Accepted",
        "It was rejected.|Rejected|The change was refused.|There is no approval.|Refused",
    ),
    claim(
        "notice",
        "the users|the customers|all customers|the users of {s}|the support team|the teams|our "
        "customers in {z}|the team of {p}",
        "were told|were informed|were told at {t}|were informed by mail|got a message|have been "
        "told|were informed by {p}|received a notice",
        "were not told|were not informed|got no message|were never told|have not been told|were "
        "told nothing|received no notice|were not informed yet",
        "Were the users told?|Were the customers informed?|Did the users get a message?|Has anybody "
        "told the customers?|Were the users informed?|Did the customers receive a notice?",
        "Were the users left without notice?|Were the customers told nothing?|Did the users get no "
        "message?|Were the users not informed?|Did the customers receive nothing?",
        "They were told.|Informed|They got a message.|They were informed.|A notice was sent.",
        "They were not told.|Not informed|They got no message.|Nobody told them.|No notice was sent.",
    ),
)

INCIDENT = (
    claim(
        "over",
        "the incident|incident {n}|the outage of {s}|the outage|the incident on {s}|the problem with "
        "{s}|the fault in {z}|the disturbance|the outage in {z}",
        "is over|ended at {t}|was resolved|was resolved at {t}|has been resolved|is closed|has "
        "ended|was solved by {p}|is solved|was closed at {t}|is fixed|has been fixed",
        "is not over|goes on|continues|is still open|is not resolved|has not ended|is not solved|"
        "is still going on|is not fixed|remains open|was not resolved|is still there",
        "Is the incident over?|Was the incident resolved?|Has the outage ended?|Is it solved?|Is "
        "the problem fixed?|Is the incident closed?|Has it been resolved?|Did the incident end?|Is "
        "the outage over?|Did they fix it?",
        "Is the incident still open?|Does the outage go on?|Does the problem remain?|Is it still "
        "going on?|Is the incident unresolved?|Is the outage still there?|Does it continue?",
        "It is over.|Resolved|The incident is closed.|It has ended.|It is solved.|Fixed",
        "It is not over.|Unresolved|The incident is open.|It goes on.|It is not solved.|Still open",
    ),
    claim(
        "lost",
        "messages|some messages|data|a message|records|{n} messages|orders|some data of {s}|records "
        "of {s}|a few records",
        "got lost|went missing|disappeared|were lost for good|could not be saved|were lost at {t}|"
        "were lost in {z}",
        "did not get lost|did not go missing|did not disappear|never got lost|could be saved|were "
        "all kept|were not lost|were saved in time",
        "Was a message lost?|Was data lost?|Did messages get lost?|Were records lost?|Is data "
        "missing?|Has any data been lost?|Did data disappear?|Did they lose messages?",
        "Were all messages kept?|Was all data saved?|Is all data still there?|Did it end without "
        "loss?|Were all records kept?|Was nothing lost?|Was the data safe?",
        "Data was lost.|Something was lost.|Messages are missing.|There was a loss.|Lost",
        "Nothing was lost.|No data was lost.|All messages are there.|There was no loss.|Kept",
    ),
    claim(
        "customers",
        "customers|users|many customers|customers in {z}|users of {s}|the customers of {s}|"
        "{n} customers|our users",
        "were affected|noticed it|saw errors|were hit|complained|could not work|saw error pages|"
        "had trouble|felt it|were affected at {t}",
        "were not affected|noticed nothing|saw no errors|were not hit|did not complain|could work "
        "on|saw no error pages|had no trouble|felt nothing|were never affected",
        "Were customers affected?|Did users notice it?|Did customers see errors?|Were users hit?|Did "
        "customers complain?|Had users trouble?|Did it affect users?|Did customers feel it?",
        "Were customers spared?|Did users notice nothing?|Could customers work on?|Did it stay "
        "without effect on users?|Were users spared?|Had users no trouble?",
        "Customers were affected.|Users noticed.|There was an effect on users.|Affected",
        "Customers were not affected.|Users noticed nothing.|No effect on users.|Not affected",
    ),
    claim(
        "restart",
        "the consumer|the {s} process|the broker|the {s} consumer|the node in {z}|the server|the "
        "worker of {s}|host {h}|the {s} server",
        "was restarted|was restarted at {t}|was restarted by {p}|came back after a restart|has been "
        "restarted|had to be restarted|was started again",
        "was not restarted|was never restarted|needed no restart|has not been restarted|did not "
        "have to be restarted|was left running|ran on without a restart",
        "Was there a restart?|Was something restarted?|Was the process restarted?|Did they restart "
        "it?|Has it been restarted?|Did a restart take place?|Was it started again?",
        "Did it run on without a restart?|Was there no restart?|Was it left running?|Did they do "
        "without a restart?|Was a restart avoided?",
        "It was restarted.|Restarted|There was a restart.|A restart was done.",
        "It was not restarted.|Not restarted|There was no restart.|It was left running.",
    ),
    claim(
        "cause",
        "the cause|the root cause|the reason|the cause of the outage|the reason for the fault|what "
        "caused it",
        "is known|was found|was found by {p}|is clear|has been found|was found at {t}|is understood",
        "is not known|was not found|is unknown|is not clear|has not been found|is still unknown|is "
        "not understood",
        "Is the cause known?|Was the cause found?|Is the reason clear?|Has somebody found the "
        "cause?|Do they know the reason?|Was the root cause found?|Is the cause understood?",
        "Is the cause unknown?|Is the reason still open?|Is the cause unclear?|Are they still "
        "without a cause?|Is the root cause unknown?|Does the reason remain unclear?",
        "The cause is known.|Known cause|The reason was found.|It is understood.",
        "The cause is unknown.|Unknown cause|The reason was not found.|It is not understood.",
    ),
    claim(
        "paged",
        "the engineer on call|{p}|the night shift|the on-call team|somebody on call|the operator|"
        "the team of {s}",
        "was paged|was called at {t}|was woken up|got an alert|was alerted|was called by phone|"
        "received the alarm|has been paged",
        "was not paged|was not called|was not woken up|got no alert|was not alerted|received no "
        "alarm|was never called|has not been paged",
        "Was somebody paged?|Was the on-call engineer called?|Did anybody get an alert?|Was someone "
        "alerted?|Did the alarm reach somebody?|Was anybody woken up?|Was the team alerted?",
        "Was nobody paged?|Did the alarm reach nobody?|Was no one called?|Did nobody get an "
        "alert?|Was no one alerted?|Did everybody sleep on?",
        "Somebody was paged.|Paged|The alarm was received.|Someone was called.",
        "Nobody was paged.|Not paged|No alarm was received.|No one was called.",
    ),
)
