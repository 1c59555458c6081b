# ruff: noqa: E501 (lists of phrases)
"""Claims about tickets, machines and shifts."""

from __future__ import annotations

from acceptance.tiny.claim import claim

TICKET = (
    claim(
        "refund",
        "the customer|the client|{p}|the caller|the writer|a customer|the user",
        "asks for a refund|wants the money back|asks for money back|wants a refund of {n} euros|"
        "demands a refund|would like the payment returned|asks to return one payment|wants one "
        "payment back",
        "does not want a refund|does not ask for money|wants no refund|asks for no money back|does "
        "not ask for a refund|wants no money back",
        "Does the customer ask for money back?|Is a refund wanted?|Does the writer want a refund?|"
        "Does the customer want the money back?|Is money to be returned?|Do they ask for a refund?",
        "Is no refund wanted?|Does the customer do without a refund?|Is no money asked for?|Does "
        "the writer want no money back?|Is it without a demand for money?",
        "A refund is wanted.|The customer wants money back.|Refund|Money is asked for.",
        "No refund is wanted.|The customer wants no money.|No refund|No money is asked for.",
    ),
    claim(
        "mail",
        "the reset mail|the mail|the message|the code|the sign-in code|the invitation|the "
        "confirmation|the reset link",
        "arrived|arrives at once|has arrived|was received|came at {t}|was delivered|is in the inbox|"
        "reached {p}|arrived on {d}",
        "never arrives|did not arrive|has not arrived|was not received|never came|was not "
        "delivered|is not in the inbox|did not reach {p}|never arrived|is missing",
        "Did the customer receive the reset mail?|Did the mail arrive?|Was the mail received?|Has "
        "the message arrived?|Did the code come?|Is the mail there?|Was the message delivered?",
        "Is the mail missing?|Did the message get lost on its way?|Does the mail fail to arrive?|Is "
        "the code missing?|Has the mail not come?|Was the message not delivered?",
        "It arrived.|The mail was received.|Received|It was delivered.|The mail is there.",
        "It did not arrive.|The mail was not received.|Missing|It was not delivered.|Not received",
    ),
    claim(
        "urgent",
        "it|this|the matter|the request|the ticket|this case|ticket {n}",
        "is urgent|needs an answer today|must be solved today|cannot wait|is very urgent|needs help "
        "at once|has to be done now|blocks the whole team|stops all work",
        "is not urgent|can wait|can wait a week|has time|may wait until {d}|is no emergency|does "
        "not need an answer soon|can be done later|has no hurry",
        "Is it urgent?|Is the matter urgent?|Does it need an answer today?|Is there a hurry?|Must it "
        "be done at once?|Is the ticket urgent?|Does it need help now?",
        "Can it wait?|Is there time?|Can the matter wait?|Can it be done later?|May it wait a "
        "week?|Has it time?|Is it without hurry?",
        "It is urgent.|Urgent|Needs an answer today|At once|Today|High",
        "It is not urgent.|Not urgent|Can wait a week|Later|It can wait.|Low",
    ),
    claim(
        "answered",
        "support|the support team|the help desk|{p} of support|our team|the hotline",
        "has answered|answered at {t}|replied|replied on {d}|wrote back|sent an answer|called back|"
        "has replied|answered the same day",
        "has not answered|never answered|did not reply|has not replied|did not write back|sent no "
        "answer|never called back|has not answered for two weeks|stays silent",
        "Has support answered?|Did support reply?|Was there an answer?|Did they write back?|Has "
        "somebody replied?|Did the help desk answer?|Is there a reply?",
        "Is support silent?|Is an answer missing?|Did support stay silent?|Is there no reply?|Is the "
        "reply missing?|Does the customer still wait for an answer?",
        "Support has answered.|Answered|There was a reply.|They wrote back.",
        "Support has not answered.|Not answered|There was no reply.|They did not write back.",
    ),
    claim(
        "fault",
        "the device|the product|the screen|the hinge|the app|the export|the printer|the lid|the "
        "{s} page|the cable|the chair",
        "is broken|broke on the second day|is damaged|does not work|squeaks|has a fault|is "
        "defective|crashes|broke after a week|has a crack",
        "works|works well|has no fault|is not damaged|is in order|is fine|works without a fault|has "
        "no crack|is not broken|runs without trouble",
        "Does the writer name a fault?|Is there a defect?|Is the product broken?|Is something "
        "damaged?|Is there a fault?|Does the customer report a defect?|Is anything broken?",
        "Is the product in order?|Is everything fine with it?|Does it work?|Is it free of faults?|"
        "Does the product work well?|Is it without a defect?",
        "There is a fault.|A defect is reported.|Broken|It is damaged.|Faulty",
        "There is no fault.|No defect is reported.|In order|It works.|It is fine.",
    ),
)

SHIFT = (
    claim(
        "running",
        "pump {n}|the pump|motor {n}|the machine|line {n}|the engine of line {n}|the compressor|fan "
        "{n}|the boiler",
        "is running|is on|was started at {t}|runs normally|is in operation|works again|was switched "
        "on at {t}|took over|is back in operation|runs again",
        "is not running|is off|was shut down at {t}|was stopped|stands still|is out of operation|was "
        "switched off at {t}|was shut down|was shut down at {t} for a leaking seal|stopped at {t}",
        "Is the pump running?|Is the machine on?|Is it in operation?|Does the machine run?|Is it "
        "running?|Does the motor run?|Is the line running?|Is it switched on?",
        "Is the machine off?|Was it shut down?|Does the pump stand still?|Is it out of operation?|"
        "Was the machine stopped?|Is it switched off?|Was the line shut down?",
        "It is running.|Running|It is on.|In operation|It runs.",
        "It is not running.|Stopped|It is off.|Out of operation|It stands still.",
    ),
    claim(
        "ordered",
        "the seal|the spare part|the new valve|the part|the bearing|the filter|the belt|the new "
        "motor",
        "is ordered|was ordered|was ordered by {p}|has been ordered|is ordered and comes on {d}|was "
        "ordered on {d}|is on order",
        "is not ordered|was not ordered|has not been ordered|still has to be ordered|was never "
        "ordered|is not on order yet|nobody has ordered yet",
        "Is the spare part ordered?|Was the part ordered?|Has somebody ordered it?|Is it on order?|"
        "Has the part been ordered?|Did they order the part?",
        "Is the part still to be ordered?|Was the order forgotten?|Is nothing on order?|Has nobody "
        "ordered the part?|Was the part not ordered?",
        "It is ordered.|Ordered|The part is on order.|An order was made.",
        "It is not ordered.|Not ordered|The part is not on order.|No order was made.",
    ),
    claim(
        "complete",
        "the batch|batch {n}|the job|the nightly job|the import|the export of {s}|the backup|the "
        "backup of {s}|job {c}|the import into {s}",
        "completed|is complete|finished at {t}|ran to the end|finished|was completed|ended without "
        "errors|is done|has completed",
        "did not complete|is not complete|stopped half way|did not run to the end|was broken off|"
        "ended early|is not done|has not completed|broke off at {t}",
        "Did the batch complete?|Is the job complete?|Did it run to the end?|Has the batch "
        "finished?|Was the backup completed?|Is it done?|Did the import finish?",
        "Did the batch break off?|Is the job incomplete?|Did it end early?|Was the job broken off?|"
        "Did it stop half way?|Is the import incomplete?",
        "It completed.|Complete|It ran to the end.|The job is done.|Finished",
        "It did not complete.|Incomplete|It broke off.|The job is not done.|Broken off",
    ),
    claim(
        "intime",
        "the notice|the delivery|the parcel|the payment|the answer|the report|the letter|the order "
        "of {p}",
        "came in time|arrived before the limit|was in time|arrived early|came a day early|was on "
        "time|arrived within the time limit|met the time limit",
        "came too late|arrived after the limit|was not in time|arrived late|came a day late|was not "
        "on time|arrived past the time limit|missed the time limit",
        "Did the notice arrive within the time limit?|Was it in time?|Did it come in time?|Was the "
        "delivery on time?|Was the time limit met?|Did it arrive early enough?",
        "Was it late?|Did it come too late?|Was the time limit missed?|Did it arrive late?|Was the "
        "delivery late?|Was it past the time limit?",
        "It was in time.|In time|On time|It came early enough.|Within the limit",
        "It was late.|Too late|Late|It came too late.|Past the limit",
    ),
    claim(
        "door",
        "the door|the gate|the window|valve {n}|the main valve|the hatch|the door of room {n}",
        "is open|was opened at {t}|stands open|was opened by {p}|was left open|is wide open",
        "is closed|was closed at {t}|is shut|was closed by {p}|was shut|is locked",
        "Is it open?|Is the door open?|Was it left open?|Does the valve stand open?|Is the gate "
        "open?|Was it opened?",
        "Is it closed?|Is the door shut?|Is it locked?|Was it closed?|Is the valve shut?|Is the "
        "gate closed?",
        "It is open.|Open|It was opened.|It stands open.",
        "It is closed.|Closed|It was shut.|Shut",
    ),
    claim(
        "present",
        "{p}|the engineer|the technician|the inspector|the guard|{p} of the night shift|the driver",
        "was there|is here|is in the building|came at {t}|is present|has arrived|is on site",
        "was not there|is not here|is not in the building|did not come|is absent|has not arrived|is "
        "not on site|stayed at home",
        "Is somebody there?|Was the person there?|Is the technician on site?|Did the person come?|Is "
        "the engineer here?|Has the person arrived?|Is the person present?",
        "Is the person absent?|Did the person stay away?|Is nobody on site?|Was the engineer "
        "missing?|Did nobody come?|Is the technician away?",
        "Present|The person is there.|On site|Somebody came.",
        "Absent|The person is not there.|Not on site|Nobody came.",
    ),
)
